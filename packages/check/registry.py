"""An npm registry on loopback that contains the given tarballs, so that `npm install` and `npx` run as they do after
publication: npm chooses the platform's package from `os`, `cpu` and `libc`. All other packages are unknown to it, or come
from another registry."""

import base64
import contextlib
import hashlib
import http.server
import json
import pathlib
import tarfile
import threading
import urllib.parse

from release.common import PROGRAM


def manifest_of(tarball):
    with tarfile.open(tarball) as archive:
        return json.load(archive.extractfile("package/package.json"))


def document_of(tarball, manifest, address):
    """Returns the registry's document about a package with one version."""
    digest = hashlib.sha512(tarball.read_bytes()).digest()
    dist = {"tarball": f"{address}/tarballs/{tarball.name}", "integrity": f"sha512-{base64.b64encode(digest).decode()}"}
    version = manifest["version"]
    return {"name": manifest["name"], "dist-tags": {"latest": version}, "versions": {version: {**manifest, "dist": dist}}}


@contextlib.contextmanager
def running(tarballs, other_registry=None):
    """Serves the tarballs, and returns the registry's address. Requests for other packages are redirected to the other
    registry, if there is one."""
    tarballs = [pathlib.Path(tarball) for tarball in tarballs]

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers requests for documents and tarballs."""

        def do_GET(self):
            path = urllib.parse.unquote(self.path.split("?", maxsplit=1)[0]).lstrip("/")
            for tarball in tarballs:
                manifest = manifest_of(tarball)
                if path == manifest["name"]:
                    return self.answer(200, json.dumps(document_of(tarball, manifest, address)).encode())
                if path == f"tarballs/{tarball.name}":
                    return self.answer(200, tarball.read_bytes())
            if other_registry is None or path.startswith(f"@{PROGRAM}/"):
                return self.answer(404, b"{}")
            return self.answer(302, b"", location=other_registry.rstrip("/") + self.path)

        def answer(self, status, body, **headers):
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Prints nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield address
    finally:
        server.shutdown()

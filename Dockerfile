# The container image of Toolcrib, which runs `toolcrib serve` as an unprivileged user. docs/install.md shows how to run it.
#
#   docker build -t toolcrib .                                                         compiles it in the first stage
#   docker build -t toolcrib --build-context build=target/packages/container .         uses the binary of scripts/release
#
# The second command uses this folder in place of the stage `build`.
FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --profile dist --locked --package toolcrib \
    && python3 scripts/sbom --target "$(rustc -vV | sed -n 's/^host: //p')" --texts --out target/sbom \
    && install -D target/dist/toolcrib /out/toolcrib \
    && install -D --mode=644 --target-directory=/out/licences \
        LICENSE-APACHE LICENSE-MIT crates/toolcrib/weights/NOTICE target/sbom/THIRD-PARTY-LICENSE-TEXTS.txt

FROM debian:bookworm-slim
# The certificates are for connections to servers and providers. The uid 1000 is that of the first user on most Linux
# desktops, so a mounted config that only this user can read works without further options.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --create-home --shell /usr/sbin/nologin toolcrib \
    && install --directory /config/toolcrib \
    && install --directory --owner=toolcrib --group=toolcrib --mode=700 /state
COPY --from=build /out/licences /usr/share/doc/toolcrib
COPY --from=build /out/toolcrib /usr/local/bin/toolcrib
COPY packages/container/health /usr/local/bin/toolcrib-health

USER toolcrib
WORKDIR /home/toolcrib
# The config is /config/toolcrib/toolcrib.toml. The token, logins and saved lists are in /state/toolcrib.
ENV XDG_CONFIG_HOME=/config XDG_STATE_HOME=/state
VOLUME ["/config/toolcrib", "/state"]
EXPOSE 4180
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["toolcrib-health"]
ENTRYPOINT ["toolcrib"]
# Other containers and the host can connect, so clients need a token.
CMD ["serve", "--listen", "0.0.0.0:4180"]

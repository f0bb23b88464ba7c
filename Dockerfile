# SPDX-License-Identifier: Apache-2.0
# An image with nothing but ddpdoctor's files, to copy from (docs/install.md): docker build -t ddpdoctor .
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ cmake ninja-build pkg-config git ca-certificates python3 python3-pip \
      libfmt-dev libcli11-dev nlohmann-json3-dev libexpected-dev libdw-dev libelf-dev libzstd-dev zlib1g-dev libbz2-dev liblzma-dev
COPY . /src
RUN cmake -S /src -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DDDPDOCTOR_TESTS=OFF -DDDPDOCTOR_STATIC=ON \
 && cmake --build /build && cmake --install /build --prefix /usr/local --strip

FROM scratch
COPY --from=build /usr/local/bin/ddpdoctor /usr/local/bin/ddpdoctor
COPY --from=build /usr/local/lib/ddpdoctor /usr/local/lib/ddpdoctor
COPY --from=build /usr/local/share/doc/ddpdoctor /usr/local/share/doc/ddpdoctor
ENTRYPOINT ["/usr/local/bin/ddpdoctor"]

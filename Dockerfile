# An image with the packages of requirements.lock, and nothing else. The suite runs from your checkout,
# so a change of its code needs no new image. docs/machines.md shows how to use it; apptainer.def is the
# same recipe for Apptainer.
FROM python:3.12-slim

# git and make serve the suite; the others let MuJoCo draw videos without a display.
RUN apt-get update \
 && apt-get install -y --no-install-recommends git make libegl1 libgl1 libosmesa6 \
 && rm -rf /var/lib/apt/lists/*

# The constraint pins the build tool of packages that are distributed as source.
COPY requirements.lock /opt/ngt/
RUN grep '^setuptools==' /opt/ngt/requirements.lock > /opt/ngt/build.txt \
 && PIP_CONSTRAINT=/opt/ngt/build.txt pip install --no-cache-dir --requirement /opt/ngt/requirements.lock \
 && printf '#!/bin/sh\nexec python -m ngt "$@"\n' > /usr/local/bin/ngt \
 && chmod 755 /usr/local/bin/ngt

# Jobs fill the cores, one thread each.
ENV OMP_NUM_THREADS=1
WORKDIR /suite

# This recipe builds an image with only the packages of requirements.lock. The suite runs from your
# checkout, so you need no new image after a change of the suite's code. docs/machines.md shows how to
# use the image; apptainer.def is the same recipe for Apptainer.
FROM python:3.12-slim

# The suite needs git and make. With the other packages, MuJoCo draws videos without a display.
RUN apt-get update \
 && apt-get install -y --no-install-recommends git make libegl1 libgl1 libosmesa6 \
 && rm -rf /var/lib/apt/lists/*

# The constraint pins setuptools, which builds the packages that are distributed as source.
COPY requirements.lock /opt/ngt/
RUN grep '^setuptools==' /opt/ngt/requirements.lock > /opt/ngt/build.txt \
 && PIP_CONSTRAINT=/opt/ngt/build.txt pip install --no-cache-dir --requirement /opt/ngt/requirements.lock \
 && printf '#!/bin/sh\nexec python -m ngt "$@"\n' > /usr/local/bin/ngt \
 && chmod 755 /usr/local/bin/ngt

# Jobs run in parallel on all cores, so each job uses one thread.
ENV OMP_NUM_THREADS=1
WORKDIR /suite

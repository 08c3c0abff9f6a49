"""An S3 server in this process, for tests of what reads and writes there."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest


@contextmanager
def bucket(patch: pytest.MonkeyPatch) -> Iterator[str]:
    """A new bucket on moto's server, which the environment names from then on: `s3://NAME`."""
    pytest.importorskip("s3fs", reason="needs the extra s3")
    moto = pytest.importorskip("moto.server", reason="needs moto's S3 server")
    boto3 = pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "made-up",
        "AWS_SECRET_ACCESS_KEY": "made-up",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in environment.items():
        patch.setenv(name, value)
    name = f"bucket-{uuid4().hex[:8]}"
    boto3.client("s3").create_bucket(Bucket=name)
    try:
        yield f"s3://{name}"
    finally:
        server.stop()

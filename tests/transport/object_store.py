"""Buckets to write to: a real S3 API (moto's server), and fsspec's memory in the place of other clouds."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any


@dataclass
class Bucket:
    url: str
    options: dict[str, Any]
    scheme: str = "s3"

    def system(self) -> Any:
        import fsspec

        return fsspec.filesystem(self.scheme, **self.options)

    def names(self) -> list[str]:
        system = self.system()
        system.invalidate_cache()
        return sorted(system.find(self.url))

    def events(self) -> list[Any]:
        system = self.system()
        lines = [line for name in self.names() for line in system.cat_file(name).splitlines()]
        return [json.loads(line) for line in lines]


def made(endpoint: str) -> Bucket:
    options = {
        "endpoint_url": endpoint,
        "key": "test",
        "secret": "test",
        "client_kwargs": {"region_name": "eu-west-1"},
    }
    bucket = Bucket(f"s3://b-{uuid.uuid4().hex[:8]}", options)
    bucket.system().mkdir(bucket.url)
    return bucket

"""The key that hashes names is created once, also by imports that start together."""

import threading
from concurrent.futures import ThreadPoolExecutor

from swflow.log.importers.records import read_key


def test_imports_at_once_use_one_key(tmp_path):
    for attempt in range(20):
        start = threading.Barrier(8)

        def use(_: int, path=tmp_path / f"{attempt}.key", start=start) -> tuple[bytes, bool]:
            start.wait()
            key, _, is_new = read_key(path)
            return key, is_new

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(use, range(8)))
        assert len({key for key, _ in found}) == 1 and sum(is_new for _, is_new in found) == 1
        assert (tmp_path / f"{attempt}.key").stat().st_mode & 0o777 == 0o600

"""From one release to the next under load: ``python -m tests.crash.upgrade [REVISION] [SECONDS]``.

Two servers of an earlier revision of this repository, with a knowledge of their own, share a
PostgreSQL database behind haproxy. One after the other is stopped as a service manager does it
(SIGTERM) and started as this release, and then one goes back. Writers and readers go on, for
SECONDS with both releases live. No request may fail; what was acknowledged is at all servers.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import httpx

from kb.settings import shipped_data
from tests.crash.replicas import Campaign, Client, table
from tests.crash.site import ROOT, Site, is_ready, running_site, until
from tests.fuzz.targets import small_data

REPLICAS = 2
FAILED = ("cut off", "refused by the balancer", "refused with a reason")


class Visitor(Client):
    """Asks without knowing the answers, which a release may change."""

    def _diagnose(self, client: httpx.Client) -> None:
        self._call(client, "POST", "/v1/diagnose", json={"text": f"step {self._rng.random()}"})


def release(folder: Path, revision: str) -> Path:
    """The code of a revision of this repository, unpacked in `folder`."""
    packed = subprocess.run(
        ["git", "archive", revision, "kb", "ingest", "app", "data"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def use(site: Site, number: int, code: Path, data: Path) -> None:
    """Let a server be of another release from its next start on."""
    program = site.replicas[number]
    program.folder = code
    program.environment |= {"TIMEOUT_KB_DATA": str(data), "PYTHONPATH": str(code)}


def upgrade(site: Site, number: int, code: Path, data: Path) -> float:
    """Replace a server by one of another release; the seconds until it was ready."""
    site.replicas[number].stop()
    use(site, number, code, data)
    site.replicas[number].start()
    address = site.addresses[number]
    return until(lambda: is_ready(address), f"{address} is ready")


def main(revision: str = "HEAD~20", seconds: str = "10") -> int:
    """Upgrade under load; 1 where a request failed or something is wrong afterwards."""
    with tempfile.TemporaryDirectory(prefix="timeout-kb-upgrade-") as name:
        folder = Path(name)
        old = release(folder / "old", revision)
        old_data = folder / "old-data"
        small_data(old_data, old / "data")
        min((old_data / "cases").glob("*.md")).unlink()  # the next release has one more
        example = ROOT / "deploy" / "haproxy.cfg"
        (folder / "site").mkdir()
        with running_site(folder / "site", example, (old, old_data), REPLICAS) as site:
            new_data = folder / "new-data"
            small_data(new_data, shipped_data())
            campaign = Campaign(site, 0, client=Visitor)
            campaign.gate.set()
            try:
                for number in range(len(site.replicas)):
                    time.sleep(float(seconds))
                    took_s = upgrade(site, number, ROOT, new_data)
                    print(f"server {number} is of the new release, ready after {took_s:.1f} s")
                time.sleep(float(seconds))
                took_s = upgrade(site, 0, old, old_data)
                print(f"server 0 is of the old release again, ready after {took_s:.1f} s")
                time.sleep(float(seconds))
                campaign.quiet()
                campaign.check(whole=True)
            finally:
                campaign.close()
                print("\n".join(campaign.counts.wrong), table(campaign), sep="\n", flush=True)
    failed = sum(campaign.counts.seen[kind] for kind in FAILED)
    done = sum(count for kind, count in campaign.counts.seen.items() if kind.endswith(" done"))
    print(f"{done} requests done, {failed} failed")
    return int(bool(failed or campaign.counts.wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

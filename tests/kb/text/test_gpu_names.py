"""GPUs have one name, whatever printed it."""

from __future__ import annotations

import pytest

from kb.text.gpu_names import bus_id, gpu_name, gpu_parts

BUSES = {
    "0000:3d:00": "3d:00",
    "00000000:3D:00.0": "3d:00",
    "3d:00.0": "3d:00",
    "1b000": "1b:00",
    "47000": "47:00",
    "1000": "01:00",
    "0001:00:00.0": "0001:00:00",
    "100000": "0001:00:00",
    "GPU 3": "",
    "": "",
}


@pytest.mark.parametrize(("text", "bus"), BUSES.items(), ids=BUSES)
def test_bus_ids_have_one_form(text: str, bus: str) -> None:
    """The driver's form and NCCL's number are the same device; what is neither is none."""
    assert bus_id(text) == bus


@pytest.mark.parametrize(
    ("number", "bus", "name"),
    [("3", "1b:00", "3 (1b:00)"), ("3", "", "3"), ("", "1b:00", "1b:00"), ("", "", "")],
)
def test_a_name_holds_what_is_known(number: str, bus: str, name: str) -> None:
    """A name is made of its parts, and they can be read out of it again."""
    assert gpu_name(number, bus) == name
    assert gpu_parts(name) == (number, bus)

"""What pasted code shows: a table of pieces, whole or in fragments; healthy code is silent."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.evidence.source_code import read_code

SCRIPTS = sorted((Path(__file__).parent / "training_scripts").glob("*.txt"))
CONDITIONAL = "code_rank_conditional_collective"
WORK = "code_rank_conditional_work"
ON_RANK = "code_exit_on_rank"
ON_DATA = "code_exit_on_data"
SKIPPED = "code_skipped_step"
DEVICE = "code_no_set_device"
ORDER = "code_unseeded_order"
ON_SOME_DATA = "code_data_conditional_call"
BRANCH = "code_branch_in_forward"

# Per piece of code: each fact with the number of its line and its detail; none for sound code.
TABLE: dict[str, tuple[tuple[str, int, str], ...]] = {
    # --- calls that only some ranks make
    "if rank == 0:\n    dist.barrier()": ((CONDITIONAL, 2, "dist.barrier"),),
    "if rank == 0: dist.barrier()": ((CONDITIONAL, 1, "dist.barrier"),),
    "if args.local_rank in (-1, 0):\n    dist.all_reduce(x)": (
        (CONDITIONAL, 2, "dist.all_reduce"),
    ),
    "if dist.get_rank() == 0:\n    dist.all_gather_object(o, x)": (
        (CONDITIONAL, 2, "dist.all_gather_object"),
    ),
    'if int(os.environ["RANK"]) == 0:\n    dist.barrier()': ((CONDITIONAL, 2, "dist.barrier"),),
    "if not torch.distributed.get_rank():\n    torch.distributed.barrier()": (
        (CONDITIONAL, 2, "torch.distributed.barrier"),
    ),
    "if accelerator.is_main_process:\n    accelerator.save_state(p)": (
        (CONDITIONAL, 2, "accelerator.save_state"),
    ),
    "if accelerator.is_local_main_process:\n    accelerator.wait_for_everyone()": (
        (CONDITIONAL, 2, "accelerator.wait_for_everyone"),
    ),
    "if trainer.is_global_zero:\n    trainer.validate(m)": ((CONDITIONAL, 2, "trainer.validate"),),
    "if trainer.is_world_process_zero():\n    metrics = trainer.evaluate()": (
        (CONDITIONAL, 2, "trainer.evaluate"),
    ),
    "if self.rank == 0:\n    self.model_engine.save_checkpoint(d)": (
        (CONDITIONAL, 2, "self.model_engine.save_checkpoint"),
    ),
    "if rank == 0:\n    self.log('a', x, sync_dist=True)": ((CONDITIONAL, 2, "self.log"),),
    "if rank == 0:\n    log(acc_metric.compute())": ((CONDITIONAL, 2, "acc_metric.compute"),),
    "if rank == 0:\n    log(loss=reduce_mean(loss))": ((CONDITIONAL, 2, "reduce_mean"),),
    "model = FSDP(model)\nif rank == 0:\n    sd = model.state_dict()": (
        (CONDITIONAL, 3, "model.state_dict"),
    ),
    "m = FSDP(m)\nif rank == 0:\n    model.save_pretrained(d, state_dict=sd)": (),
    "m = FSDP(m)\nif rank == 0:\n    tokenizer.save_pretrained(d)": (),
    "if rank == 0:\n    sd = model.state_dict()\n    torch.save(sd, 'a.pt')": (),
    "if rank == 0:\n    for x in xs:\n        if x:\n            dist.barrier()": (
        (CONDITIONAL, 4, "dist.barrier"),
    ),
    "if rank == 0:\n    a()\nelse:\n    dist.barrier()": ((CONDITIONAL, 4, "dist.barrier"),),
    "if rank == 0:\n    dist.barrier()\nelse:\n    dist.barrier()": (),
    "if rank != 0:\n    dist.barrier()\nload()\nif rank == 0:\n    dist.barrier()": (),
    "if rank == 0:\n    print('x')\ndist.barrier()": (),
    "if rank == 0:\n    dist.send(x, 1)\nelse:\n    dist.recv(x, 0)": (),
    "if args.local_rank != -1:\n    dist.barrier()": (),
    "if dist.is_initialized():\n    dist.barrier()": (),
    "if step % 10 == 0:\n    dist.barrier()": (),
    "if mpu.get_tensor_model_parallel_rank() == 0:\n    dist.all_reduce(x, group=g)": (),
    "# if rank == 0:\n#     dist.barrier()": (),
    "s = 'if rank == 0: dist.barrier()'": (),
    "@rank_zero_only\ndef save(self):\n    dist.barrier()": ((CONDITIONAL, 3, "dist.barrier"),),
    "def average(x):\n    dist.all_reduce(x)\nif rank == 0:\n    average(loss)": (
        (CONDITIONAL, 4, "average"),
    ),
    "def save(x):\n    if rank == 0:\n        torch.save(x, p)\nif rank == 0:\n    save(x)": (),
    # --- long work of one rank
    "if rank == 0:\n    evaluate(model)": ((WORK, 2, "evaluate"),),
    "if is_main_process():\n    acc = validate(val_loader, model)": ((WORK, 2, "validate"),),
    "if rank == 0:\n    model.eval()\n    for b in val: model(b)": ((WORK, 2, "model.eval"),),
    "if rank == 0:\n    ds = raw.map(tok)\ndist.barrier()": ((WORK, 2, "raw.map"),),
    "model = FSDP(model)\nif rank == 0:\n    out = model(x)": ((CONDITIONAL, 3, "model"),),
    "if rank != 0:\n    evaluate(model)": (),
    "evaluate(model)": (),
    # --- leaving before the others
    "def save():\n    if rank != 0:\n        return\n    write()\n    dist.barrier()": (
        (ON_RANK, 2, "dist.barrier"),
    ),
    "def save():\n    if not accelerator.is_main_process: return\n    accelerator.save_state(p)": (
        (ON_RANK, 2, "accelerator.save_state"),
    ),
    "def save():\n    if rank != 0:\n        return\n    torch.save(x, p)": (),
    "for b in loader:\n    if rank == 3:\n        break\n    dist.all_reduce(b)": (
        (ON_RANK, 2, "dist.all_reduce"),
    ),
    "for b in loader:\n    if rank == 1: continue\n    loss.backward()": (
        (ON_RANK, 2, "loss.backward"),
    ),
    "for b in loader:\n    loss.backward()\n    if rank != 0:\n        continue\n    log(loss)": (),
    "def step(b):\n    if rank != 0:\n        return\n    loss.backward()": (),
    "for b in loader:\n    if b is None:\n        continue\n    loss = model(b)": (),
    "for batch in loader:\n    if batch is None:\n        continue\n    loss.backward()": (
        (ON_DATA, 2, "loss.backward"),
    ),
    "for b in dl:\n    if torch.isnan(loss):\n        continue\n    accelerator.backward(loss)": (
        (ON_DATA, 2, "accelerator.backward"),
    ),
    "for b in loader:\n    if len(batch['ids']) == 0: continue\n    optimizer.step()": (
        (ON_DATA, 2, "optimizer.step"),
    ),
    "for b in loader:\n    if mask.sum() == 0:\n        continue\n    dist.all_reduce(x)": (
        (ON_DATA, 2, "dist.all_reduce"),
    ),
    "for b in loader:\n    dist.all_reduce(loss)\n    if torch.isnan(loss):\n        continue\n"
    "    loss.backward()": (),
    "for b in loader:\n    if step >= max_steps:\n        break\n    loss.backward()": (),
    "for b in loader:\n    if step < resume_step:\n        continue\n    loss.backward()": (),
    "for b in x:\n    try:\n        loss.backward()\n    except StopIteration:\n        break": (),
    "for b in loader:\n    if self.loss == 'mse':\n        continue\n    loss.backward()": (),
    "for b in loader:\n    loss.backward()\n    if torch.isnan(loss):\n        print(loss)": (),
    # --- calls that data decides
    "if len(boxes) > 0:\n    dist.all_reduce(x)": ((ON_SOME_DATA, 2, "dist.all_reduce"),),
    "if mask.any():\n    loss.backward()": ((ON_SOME_DATA, 2, "loss.backward"),),
    "if mask.any():\n    loss.backward()\nelse:\n    (0 * loss).backward()": (),
    "if mask.any():\n    dist.all_reduce(x)\nelse:\n    dist.all_reduce(y)": (),
    "dist.all_reduce(mask)\nif mask.any():\n    loss.backward()": (),
    "if step % 8 == 0:\n    optimizer.step()": (),
    # --- a step skipped by an exception
    "for b in x:\n    try:\n        loss.backward()\n    except RuntimeError:\n        continue": (
        (SKIPPED, 4, "loss.backward"),
    ),
    "for b in x:\n    try:\n        loss.backward()\n    except RuntimeError:\n        raise": (),
    "for b in loader:\n    try:\n        x = load(b)\n    except OSError:\n        continue": (),
    "try:\n    loss.backward()\nexcept RuntimeError:\n    pass": (),
    # --- devices
    "dist.init_process_group('nccl')\nmodel = Net().cuda()": ((DEVICE, 2, ""),),
    "dist.init_process_group('nccl')\nmodel.to('cuda')": ((DEVICE, 2, ""),),
    "dist.init_process_group('nccl')\ndevice = torch.device('cuda')": ((DEVICE, 2, ""),),
    "dist.init_process_group('nccl')\ntorch.cuda.set_device(rank)\nmodel = Net().cuda()": (),
    "dist.init_process_group('nccl', device_id=d)\nmodel = Net().cuda()": (),
    "dist.init_process_group('nccl')\nmodel = Net().to(local_rank)": (),
    "dist.init_process_group('nccl')\nx.cuda()\nd = f'cuda:{r}'": (),
    "model = Net().cuda()": (),
    # --- order of the data
    "random.shuffle(files)\nmine = files[rank::world_size]": ((ORDER, 1, ""),),
    "a, b = train_test_split(rows)\ns = DistributedSampler(a)": ((ORDER, 1, ""),),
    "files = os.listdir(d)\nmine = files[rank::world_size]": ((ORDER, 1, ""),),
    "for name in set(names):\n    use(name)\nds = ds.shard(n, i)": ((ORDER, 1, ""),),
    "random.seed(rank)\nrandom.shuffle(files)\nmine = files[rank::world_size]": ((ORDER, 2, ""),),
    "random.seed(42)\nrandom.shuffle(files)\nmine = files[rank::world_size]": (),
    "a, b = train_test_split(rows, random_state=1)\ns = DistributedSampler(a)": (),
    "if os.path.isdir(d) and os.listdir(d):\n    x = files[rank::world_size]": (),
    "files = sorted(os.listdir(d))\nmine = files[rank::world_size]": (),
    "random.shuffle(files)": (),
    # --- parts of the model that some data does not reach
    "def forward(self, x, pixel_values=None):\n    if pixel_values is not None:\n"
    "        x = x + self.vision_tower(pixel_values)\n    return self.head(x)": (
        (BRANCH, 2, "self.vision_tower"),
    ),
    "def forward(self, x, mask):\n    if mask.any():\n        x = self.expert(x)\n    return x\n"
    "model = DDP(net, find_unused_parameters=False)": (
        (BRANCH, 2, "self.expert, find_unused_parameters=False"),
    ),
    "def forward(self, x, image_pos):\n    if image_pos is None:\n        p = self.rope(x)": (),
    "def forward(self, x, images):\n    if self.config.images:\n        x = self.tower(images)": (),
    "def forward(self, x, labels=None):\n    if labels is not None:\n        l = ce(x, labels)": (),
    "def load(self, images):\n    if images is not None:\n        self.cache(images)": (),
    "model = DDP(net, find_unused_parameters=False)": (),
}


def shown(code: str, first: int = 1) -> tuple[tuple[str, int, str], ...]:
    """Name, line and detail of each fact."""
    lines = list(enumerate(code.split("\n"), start=first))
    return tuple((fact.name, fact.line, fact.detail) for fact in read_code(lines))


def named(code: str) -> str:
    """A test's name."""
    return code.replace("\n", " / ")[:80]


@pytest.mark.parametrize("code", TABLE, ids=named)
def test_a_piece_that_parses(code: str) -> None:
    """Exactly the facts of the table, each quoted as its line stands there."""
    assert shown(code) == TABLE[code]
    lines = code.split("\n")
    for fact in read_code(list(enumerate(lines, start=1))):
        assert fact.quote == lines[fact.line - 1].strip()


@pytest.mark.parametrize("code", TABLE, ids=named)
def test_the_same_in_code_that_does_not_parse(code: str) -> None:
    """A line that no Python is, before and behind it, changes nothing."""
    broken = f"<some code left out>\n{code}\n<and more of it>"
    assert shown(broken, first=0) == TABLE[code]


@pytest.mark.parametrize("code", TABLE, ids=named)
def test_the_same_further_in_and_further_down(code: str) -> None:
    """A fragment that stands indented deep in a long paste tells the same on its own lines."""
    inner = textwrap.indent(code, " " * 8)
    expected = tuple((name, line + 99, detail) for name, line, detail in TABLE[code])
    assert shown(inner, first=100) == expected


@pytest.mark.parametrize("code", TABLE, ids=named)
def test_the_same_in_an_interpreter_and_in_a_diff(code: str) -> None:
    """Prompts are taken off; of a diff what it adds and keeps is read, not what it takes away."""
    prompts = "\n".join(
        ("... " if line.startswith(" ") else ">>> ") + line for line in code.split("\n")
    )
    assert shown(prompts) == TABLE[code]
    added = "\n".join(["@@ -1,3 +1,9 @@", *("+" + line for line in code.split("\n"))])
    assert shown(added, first=0) == TABLE[code]
    taken = "\n".join(["@@ -1,3 +1,9 @@", *("-" + line for line in code.split("\n"))])
    assert shown(taken) == ()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_healthy_training_code_is_silent(script: Path) -> None:
    """Guards as tutorials write them are no finding."""
    assert shown(script.read_text(encoding="utf-8")) == ()


def test_there_is_healthy_code() -> None:
    """Several ways of writing a distributed training are among it."""
    assert len(SCRIPTS) >= 4


def test_fragments_are_read_apart() -> None:
    """Of two pieces with a gap between them, none balances the other's barrier."""
    lines = [(1, "if rank == 0:"), (2, "    dist.barrier()"), (40, "if rank != 0:")]
    assert [fact.line for fact in read_code([*lines, (41, "    dist.barrier()")])] == [2]


@given(st.text(alphabet=st.sampled_from("if rank==0:\n (){}[]'\"\\\t#ab.,@"), max_size=300))
def test_any_text_is_read(text: str) -> None:
    """Nothing raises, and every fact stands on a line of the text."""
    lines = list(enumerate(text.split("\n"), start=1))
    for fact in read_code(lines):
        assert fact.quote == lines[fact.line - 1][1].strip()[: len(fact.quote)]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 50_000,
        "\n".join(" " * depth + "if rank == 0:" for depth in range(500)),
        "if rank == 0: " * 5_000,
        "x = " + "-" * 50_000 + "1",
        "\x00if rank == 0:",
        "a." * 20_000 + "b(",
        "'" * 30_000,
        "\n".join(["a." * 500] * 100),
        "\n".join(["if " + "loss" * 200] * 300),
    ],
    ids=["brackets", "depth", "headers", "minus", "null", "dots", "quotes", "names", "words"],
)
def test_hostile_code_costs_little(text: str) -> None:
    """Deep and long code is read in a moment or left alone, and raises nothing."""
    started = time.process_time()
    lines = [line.strip() for line in text.split("\n")]
    for fact in read_code(list(enumerate(text.split("\n"), start=1))):
        assert lines[fact.line - 1].startswith(fact.quote)
    assert time.process_time() - started < 3

"""Prompts: what a person picks in an agent to begin with; their words stand in data/labels."""

from __future__ import annotations

from dataclasses import dataclass

from kb.errors import InputError
from kb.knowledge.labels import Words


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptType:
    """A prompt; its title, description and text are labels, `arguments` fill the text."""

    name: str
    title: str
    description: str
    text: str
    arguments: tuple[str, ...]


PROMPTS = (
    PromptType(
        name="diagnose_job",
        title="agent.diagnose_title",
        description="agent.diagnose_about",
        text="agent.diagnose_text",
        arguments=("log",),
    ),
    PromptType(
        name="check_launch",
        title="agent.check_title",
        description="agent.check_about",
        text="agent.check_text",
        arguments=("script",),
    ),
    PromptType(
        name="write_down_outcome",
        title="agent.outcome_title",
        description="agent.outcome_about",
        text="agent.outcome_text",
        arguments=("incident",),
    ),
)
PROMPT_BY_NAME = {prompt.name: prompt for prompt in PROMPTS}


def prompt_text(prompt: PromptType, values: dict[str, str], words: Words) -> str:
    """The text of a prompt with its arguments.

    Raises:
        InputError: one is missing.
    """
    missing = [name for name in prompt.arguments if not values.get(name, "").strip()]
    if missing:
        names = ", ".join(missing)
        raise InputError(
            f"the prompt {prompt.name} needs {names}",
            todo=f"pass {names}",
            reason="prompt_arguments",
            values={"prompt": prompt.name, "arguments": names},
        )
    return words(prompt.text, **{name: values[name] for name in prompt.arguments})

"""The look: colours, type and spacing on top of Streamlit's light and dark theme."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import streamlit as st

from kb.types.vocabulary import Language

SANS = (
    "'Source Sans', system-ui, 'PingFang SC', 'Hiragino Sans GB', 'Microsoft YaHei', "
    "'Noto Sans CJK SC', 'Noto Sans SC', sans-serif"
)
MONO = (
    "'Source Code Pro', ui-monospace, 'Cascadia Mono', Menlo, Consolas, "
    "'Noto Sans Mono CJK SC', 'PingFang SC', 'Microsoft YaHei', monospace"
)
# Text on its ground has a contrast of at least 4.5 in both themes: a test computes it.
LIGHT = {
    "primaryColor": "#0a5bb8",
    "backgroundColor": "#ffffff",
    "secondaryBackgroundColor": "#f3f5f7",
    "textColor": "#1a2027",
    "linkColor": "#0a5bb8",
    "borderColor": "#d5dbe1",
    "codeBackgroundColor": "#f3f5f7",
}
DARK = {
    "primaryColor": "#7ab5f5",
    "backgroundColor": "#101418",
    "secondaryBackgroundColor": "#191f26",
    "textColor": "#e4e8ec",
    "linkColor": "#7ab5f5",
    "borderColor": "#333c46",
    "codeBackgroundColor": "#191f26",
}
# name: (text light, ground light, text dark, ground dark)
TONES = {
    "sure": ("#093b78", "#cfe2f8", "#b9dafc", "#17385f"),
    "good": ("#12633a", "#e3f4ea", "#86d9a9", "#14301f"),
    "likely": ("#0a4f9e", "#e4effb", "#8fc3fa", "#14283f"),
    "possible": ("#7a4a00", "#fdf1da", "#f0c36f", "#33270f"),
    "bad": ("#9c1c1c", "#fdeaea", "#ff9d97", "#3a1a1b"),
    "info": ("#0a4f9e", "#e4effb", "#8fc3fa", "#14283f"),
    "quiet": ("#4a545f", "#eceff2", "#b3bdc7", "#232b33"),
}

# On a phone the menu is a drawer, which stays open over the page that was chosen in it.
# A tab keeps the name it was given first, so that after a reload its answer is found again; so
# does a browser, so that what was said in one of its tabs can be changed in another.
# j and k go to the next and the previous cause; what is pasted outside of a field goes to the box.
# What stands in the box unsent is put into it again after a reload: the tab keeps it until it is
# sent. Streamlit fills the box itself some time after it has drawn it, so it is looked at again.
SCRIPT = """const DRAFT = "timeout-kb-draft", LOOK_MS = 300;
export default ({data, setStateValue}) => {
  const root = document.documentElement;
  root.lang = data.language;
  for (const [name, storage] of [["tab", sessionStorage], ["browser", localStorage]]) {
    const kept = storage.getItem(`timeout-kb-${name}`);
    if (!kept) storage.setItem(`timeout-kb-${name}`, data[name]);
    else if (kept !== data[name] && root.dataset[name] !== kept) {
      root.dataset[name] = kept;
      setStateValue(name, kept);
    }
  }
  const find = () => document.querySelector(".st-key-paste textarea");
  if (!root.dataset.isWatched) {
    root.dataset.isWatched = "yes";
    const setValue = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
    setInterval(() => {
      const field = find(), text = sessionStorage.getItem(DRAFT);
      if (!field || !text || text === field.value) return;
      setValue.call(field, text);
      field.dispatchEvent(new Event("input", {bubbles: true}));
    }, LOOK_MS);
  }
  document.oninput = event => {
    if (event.target !== find()) return;
    try {
      sessionStorage.setItem(DRAFT, event.target.value);
    } catch {
      sessionStorage.removeItem(DRAFT);  // larger than the browser keeps
    }
  };
  document.onclick = event => {
    if (event.target.closest(".st-key-run, .st-key-tk_examples button")) {
      sessionStorage.removeItem(DRAFT);
    }
    const close = document.querySelector("[data-testid=stSidebarCollapseButton] button");
    if (close && event.target.closest("[data-testid=stSidebarNavLink]")) close.click();
  };
  document.onkeydown = event => {
    const field = event.target.closest("input, textarea, select, [contenteditable=true]");
    if (field === find() && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      sessionStorage.removeItem(DRAFT);
    }
    if (field || event.altKey) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key === "v") document.querySelector(".st-key-paste textarea")?.focus();
      return;
    }
    const step = {j: 1, k: -1}[event.key];
    const stops = [...document.querySelectorAll("[class*=st-key-tk_cause_]")].map(
      cause => cause.querySelector(".tk-cause a")
        || cause.closest("details").querySelector("summary"));
    if (!step || !stops.length) return;
    const at = stops.indexOf(document.activeElement);
    const next = stops[at < 0 ? 0 : Math.min(stops.length - 1, Math.max(0, at + step))];
    next.focus();
    next.scrollIntoView({block: "center"});
  };
};"""


def theme_flags() -> dict[str, Any]:
    """The theme as options of Streamlit."""
    flags: dict[str, Any] = {
        "theme_font": SANS,
        "theme_codeFont": MONO,
        "theme_baseFontSize": 15,
        "theme_baseRadius": "6px",
        "theme_showWidgetBorder": True,
    }
    for part, colours in (("light", LIGHT), ("dark", DARK)):
        flags |= {f"theme_{part}_{name}": value for name, value in colours.items()}
    return flags


@functools.cache
def sheet() -> str:
    """The style sheet with the tones as variables."""
    tones = "".join(
        f".tk-{name}{{--ink:light-dark({ink},{ink_dark});--ground:light-dark({ground},{ground_dark})}}"
        for name, (ink, ground, ink_dark, ground_dark) in TONES.items()
    )
    own = (Path(__file__).parent / "look.css").read_text(encoding="utf-8")
    return tones + own


def apply() -> None:
    """Put the style sheet on the page."""
    st.html(f"<style>{sheet()}</style>")


def set_texts(**words: str) -> None:
    """Put words into the style sheet, for what Streamlit says in English only: ``var(--name)``."""
    quoted = "".join(
        f"--{name}:{json.dumps(text, ensure_ascii=False)};" for name, text in words.items()
    )
    st.html(f"<style>:root{{{quoted}}}</style>")


def icon() -> str:
    """The icon in the browser's tab, drawn here so that nothing is fetched."""
    return str(Path(__file__).parent / "icon.svg")


def settle_document(language: Language, tab: str, browser: str) -> tuple[str, str]:
    """Have the browser name the document's language, listen to keys and keep both names.

    Returns:
        the names that tab and browser have: those given here, or those of an earlier visit.
    """
    # Nothing to style, so that the script need not wait for a root of its own.
    component = st.components.v2.component("document", js=SCRIPT, isolate_styles=False)
    data = {"language": language, "tab": tab, "browser": browser}
    result = component(
        data=data,
        key="tk_document",
        on_tab_change=lambda: None,
        on_browser_change=lambda: None,
    )
    return str(result.tab or tab), str(result.browser or browser)

"""What only the browser can do: name the document's language, close a phone's menu."""

from __future__ import annotations

import streamlit as st

from kb.types import Language

# On a phone the menu is a drawer, which stays open over the page that was chosen in it.
SCRIPT = """export default ({data}) => {
  document.documentElement.lang = data.language;
  document.onclick = event => {
    const close = document.querySelector("[data-testid=stSidebarCollapseButton] button");
    if (close && event.target.closest("[data-testid=stSidebarNavLink]")) close.click();
  };
};"""


def settle(language: Language) -> None:
    """Have the browser do it; the script is ours alone and takes nothing but the language."""
    # Nothing to style, so that the script need not wait for a root of its own.
    component = st.components.v2.component("document", js=SCRIPT, isolate_styles=False)
    component(data={"language": language}, key="tk_document")

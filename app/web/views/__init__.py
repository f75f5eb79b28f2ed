"""The pages, one module each; a folder called pages Streamlit would take for scripts of its own."""

"""The page: a Streamlit face. `main.py` is the script Streamlit runs."""

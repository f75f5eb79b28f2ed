"""Messages of the bot as Block Kit: plain builders, and what is built of them."""

"""Files and folders: decoding, archives, locks, the state folder."""

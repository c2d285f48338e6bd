"""Cutting content into chunks and compressing frames. Pure; neither is needed by a reader's eye."""

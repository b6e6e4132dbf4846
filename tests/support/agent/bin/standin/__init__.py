"""A stand-in for the GitHub Actions agent: the listener and the worker as a supervisor sees them, without .NET.

Starts in some ten milliseconds: no site-packages, no ``http.client``, PSS signed with ``pow``.
"""

"""A strict GitHub for tests: TLS, own CA, every call that a runner's life needs.

It runs as a process of its own (``python3 -m github``) and serves any number of independent *worlds*. A world is one GitHub: its
entities, tokens, runners, jobs, clock, faults, log of requests and list of violations. A listening socket belongs to one world; the
control socket passes it in as a descriptor, so that the socket can live in a network namespace that the server itself never enters.

Modules: ``world`` (state), ``wire`` (HTTP over TLS, faults), ``strict`` (what a request must look like), ``routes`` (who answers what),
``register`` (runner-registration and runner-admin), ``pipelines`` (V1), ``messages`` (OAuth, sessions, jobs), ``rest`` (PAT, App, JIT),
``certs`` (the test CA), ``control`` (the control API and its client, ``Hub``).
"""

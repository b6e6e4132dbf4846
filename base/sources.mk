base_src := base/err.c base/str.c base/buf.c base/secret.c base/deadline.c base/log.c base/fs.c base/child.c

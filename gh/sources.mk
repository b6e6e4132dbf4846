gh_src := gh/answer.c gh/b64.c gh/body.c gh/diagnose.c gh/files.c gh/flow.c gh/gh.c gh/jit.c gh/json.c gh/key.c \
	gh/keygen.c gh/register.c gh/remove.c gh/rest.c gh/scope.c gh/session.c gh/tokens.c gh/v1.c gh/version.c gh/wire.c

/* GitHub's answers: the first byte chooses the reader. What is accepted keeps its promises. */
#include "gh/answer.h"
#include "gh/flow.h"
#include "gh/version.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void read_one(unsigned char which, const void *p, size_t n)
{
	static struct answer_auth auth;
	static struct answer_agent agent;
	static struct answer_token token;
	static struct answer_jit jit;
	struct answer_group group;
	struct answer_found found;
	struct err e = ERR_INIT;
	char a[512], b[64];
	uint64_t id = 0;
	int rc = 0;

	switch (which % 12) {
	case 0:
		rc = answer_auth(p, n, &auth, &e);
		break;
	case 1:
	case 2:
		rc = answer_agent(p, n, which % 12 == 1 ? DIALECT_V1 : DIALECT_V2, &agent, &e);
		if (rc == 0 && (agent.id == 0 || strlen(agent.client_id) != 36))
			abort();
		break;
	case 3:
		rc = answer_groups(p, n, DIALECT_V1, "", false, &group, &e);
		break;
	case 4:
		rc = answer_groups(p, n, DIALECT_V2, "gpu", true, &group, &e);
		break;
	case 5:
		rc = answer_lookup(p, n, DIALECT_REST, "r1", &found, &e);
		break;
	case 6:
		rc = answer_lookup(p, n, DIALECT_V1, "r1", &found, &e);
		break;
	case 7:
		rc = answer_token(p, n, &token, &e);
		break;
	case 8:
		rc = answer_installation(p, n, "acme", &id, &e);
		if (rc == 1 && id == 0)
			abort();
		break;
	case 9:
		rc = answer_jit(p, n, &jit, &e);
		break;
	case 10:
		rc = v1_read_route(p, n, "e298ef32-5878-4cab-993c-043836571f42", a, sizeof a, &e);
		break;
	default:
		answer_message(p, n, a, sizeof a, b, sizeof b);
		rc = version_from_deps(p, n, b, sizeof b, &e);
		break;
	}
	if (rc < 0 && e.text[0] == 0)
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	if (size > 0)
		read_one(data[0], data + 1, size - 1);
	return 0;
}

/* What the tool's report means. A field that the card or the driver does not have (N/A) is no
 * fault: it is said and not judged. */
#include "base/str.h"
#include "probes/internal.h"

#include <string.h>

static const char *label(const struct smi *m, unsigned i)
{
	return m->gpu[i].bus[0] != 0 ? m->gpu[i].bus : "card";
}

static void judge_smi(struct ctx *c, const struct smi *m)
{
	const struct vendor *v = vendor_here(c->s);
	unsigned numbers[CARDS_MAX], nodes = vendor_nodes(v, numbers);
	struct tally t = TALLY_INIT;

	if (m->n_gpus == 0) {
		say(c, C_GPU_SMI, V_FAIL, ACT_RESTART_CONTAINER,
		    "recreate the container with --gpus all; if the host shows none either, "
		    "reboot it",
		    "nvidia-smi sees no card");
		return;
	}
	tally_add(&t, V_PASS, ACT_NONE, NULL, "%u x %s, driver %s, CUDA %s", m->n_gpus,
		  m->gpu[0].name[0] != 0 ? m->gpu[0].name : "card", m->driver,
		  m->cuda[0] != 0 ? m->cuda : "?");
	for (unsigned i = 0; i < m->n_gpus; i++)
		if (m->gpu[i].bad_field[0] != 0)
			tally_add(&t, V_FAIL, ACT_REBOOT, NULL,
				  "%s does not answer the driver (%s)", label(m, i),
				  m->gpu[i].bad_field);
	if (m->n_gpus < nodes && m->n_gpus < SMI_GPUS_MAX)
		tally_add(&t, V_FAIL, ACT_REBOOT,
			  "a card is gone without a message: drain the node and reboot it; replace "
			  "the card if it stays away",
			  "nvidia-smi sees %u of %u cards that have a node", m->n_gpus, nodes);
	if (c->s->expect_gpus > m->n_gpus && m->n_gpus < SMI_GPUS_MAX)
		tally_add(&t, V_FAIL, ACT_REBOOT, probe_checks[C_GPU_COUNT].remedy,
			  "INIT_EXPECT_GPUS says %u and nvidia-smi sees %u", c->s->expect_gpus,
			  m->n_gpus);
	tally_say(c, C_GPU_SMI, &t);
}

static void judge_recovery(struct ctx *c, const struct smi *m)
{
	static const struct {
		const char *value;
		enum action action;
	} wants[] = {{"Reset", ACT_RESET_GPU},	   {"GPU Reset", ACT_RESET_GPU},
		     {"Reboot", ACT_REBOOT},	   {"Node Reboot", ACT_REBOOT},
		     {"Drain P2P", ACT_RESET_GPU}, {"Drain and Reset", ACT_RESET_GPU}};
	struct tally t = TALLY_INIT;

	for (unsigned i = 0; i < m->n_gpus; i++) {
		const char *r = m->gpu[i].recovery;
		enum action a = ACT_REBOOT; /* what this table does not know is taken seriously */
		if (r[0] == 0) {
			tally_add(&t, V_PASS, ACT_NONE, NULL, "%s: not told by this driver",
				  label(m, i));
			continue;
		}
		if (str_eq_nocase(r, "None")) {
			tally_add(&t, V_PASS, ACT_NONE, NULL, "%s: none", label(m, i));
			continue;
		}
		for (size_t k = 0; k < sizeof wants / sizeof wants[0]; k++)
			if (str_eq_nocase(r, wants[k].value))
				a = wants[k].action;
		tally_add(&t, V_FAIL, a, NULL, "%s: the driver asks for: %s", label(m, i), r);
	}
	tally_say(c, C_GPU_RECOVERY, &t);
}

static void judge_ecc(struct ctx *c, const struct smi *m)
{
	struct tally t = TALLY_INIT;

	for (unsigned i = 0; i < m->n_gpus; i++) {
		const struct smi_gpu *g = &m->gpu[i];
		if (!g->ecc_read)
			tally_add(&t, V_PASS, ACT_NONE, NULL, "%s: no ECC counters", label(m, i));
		else if (g->ecc_uncorrected == 0)
			tally_add(&t, V_PASS, ACT_NONE, NULL, "%s: 0", label(m, i));
		else
			tally_add(&t, V_FAIL, ACT_RESET_GPU, NULL,
				  "%s: %llu uncorrected errors since the last reset", label(m, i),
				  (unsigned long long)g->ecc_uncorrected);
		if (str_eq_nocase(g->sram_threshold, "Yes"))
			tally_add(&t, V_FAIL, ACT_REPLACE, "drain the node and replace the card",
				  "%s: SRAM errors are over the maker's threshold", label(m, i));
	}
	tally_say(c, C_GPU_ECC, &t);
}

static void judge_remap(struct ctx *c, const struct smi *m)
{
	struct tally t = TALLY_INIT;

	for (unsigned i = 0; i < m->n_gpus; i++) {
		const struct smi_gpu *g = &m->gpu[i];
		if (str_eq_nocase(g->remap_failure, "Yes"))
			tally_add(&t, V_FAIL, ACT_REPLACE, "drain the node and replace the card",
				  "%s: row remapping failed", label(m, i));
		else if (str_eq_nocase(g->remap_pending, "Yes"))
			tally_add(&t, V_FAIL, ACT_RESET_GPU, NULL,
				  "%s: row remapping is pending until a reset", label(m, i));
		else if (str_eq_nocase(g->retire_pending, "Yes"))
			tally_add(&t, V_FAIL, ACT_RESET_GPU, NULL,
				  "%s: page retirement is pending until a reset", label(m, i));
		else if (str_eq_nocase(g->repair_pending, "Yes"))
			tally_add(&t, V_FAIL, ACT_RESET_GPU, NULL,
				  "%s: a memory channel repair is pending until a reset",
				  label(m, i));
		else
			tally_add(&t, V_PASS, ACT_NONE, NULL, "%s: %s", label(m, i),
				  g->remap_pending[0] != 0 ? "none" : "not supported");
	}
	tally_say(c, C_GPU_REMAP, &t);
}

static void judge_fabric(struct ctx *c, const struct smi *m)
{
	struct tally t = TALLY_INIT;

	for (unsigned i = 0; i < m->n_gpus; i++) {
		const struct smi_gpu *g = &m->gpu[i];
		if (g->fabric_state[0] == 0)
			tally_add(&t, V_PASS, ACT_NONE, NULL, "%s: no fabric", label(m, i));
		else if (!str_eq_nocase(g->fabric_state, "Completed"))
			tally_add(&t, V_FAIL, ACT_RESTART_CONTAINER, NULL,
				  "%s: fabric not ready: %s", label(m, i), g->fabric_state);
		else if (g->fabric_status[0] != 0 && !str_eq_nocase(g->fabric_status, "Success"))
			tally_add(&t, V_FAIL, ACT_RESET_GPU,
				  "restart nvidia-fabricmanager on the host and reset the GPUs",
				  "%s: fabric registration ended in: %s", label(m, i),
				  g->fabric_status);
		else
			tally_add(&t, V_PASS, ACT_NONE, NULL, "%s: ready", label(m, i));
	}
	tally_say(c, C_GPU_FABRIC, &t);
}

static void judge_state(struct ctx *c, const struct smi *m)
{
	struct tally heat = TALLY_INIT, mig = TALLY_INIT;

	for (unsigned i = 0; i < m->n_gpus; i++) {
		const struct smi_gpu *g = &m->gpu[i];
		if (g->throttle[0] != 0)
			tally_add(&heat, V_WARN, ACT_NONE, NULL, "%s: %s", label(m, i),
				  g->throttle);
		else
			tally_add(&heat, V_PASS, ACT_NONE, NULL, "%s: no", label(m, i));
		if (!str_eq_nocase(g->mig_mode, "Enabled"))
			tally_add(&mig, V_PASS, ACT_NONE, NULL, "%s: off", label(m, i));
		else if (g->mig_devices == 0)
			tally_add(&mig, V_FAIL, ACT_NONE, NULL,
				  "%s: MIG is on and no instance is visible here", label(m, i));
		else
			tally_add(&mig, V_PASS, ACT_NONE, NULL, "%s: %u of %s", label(m, i),
				  g->mig_devices,
				  c->facts.mig[0] != 0 ? c->facts.mig : "unknown profile");
	}
	tally_say(c, C_GPU_THROTTLE, &heat);
	tally_say(c, C_GPU_MIG, &mig);
}

static void judge_processes(struct ctx *c, const struct smi *m)
{
	struct tally t = TALLY_INIT;

	for (unsigned i = 0; i < m->n_procs; i++)
		tally_add(&t, V_WARN, ACT_NONE, NULL, "%s: pid %llu %s, %s",
			  label(m, m->proc[i].gpu), (unsigned long long)m->proc[i].pid,
			  m->proc[i].name, m->proc[i].memory);
	if (m->n_procs == 0)
		tally_add(&t, V_PASS, ACT_NONE, NULL, "none");
	tally_say(c, C_GPU_PROCESSES, &t);
}

static void judge_memory(struct ctx *c, const struct smi *m)
{
	uint64_t limit = c->s->gpu_max_used >> 20;
	struct tally t = TALLY_INIT;
	char who[256];
	unsigned n = 0;

	who[0] = 0;
	for (unsigned i = 0; i < m->n_gpus; i++)
		if (limit > 0 && m->gpu[i].mem_read && m->gpu[i].mem_used_mib > limit)
			n = holders(vendor_here(c->s), who, sizeof who);
	for (unsigned i = 0; i < m->n_gpus; i++) {
		const struct smi_gpu *g = &m->gpu[i];
		if (!g->mem_read)
			tally_add(&t, V_UNKNOWN, ACT_NONE, NULL, "%s: not readable", label(m, i));
		else if (limit == 0 || g->mem_used_mib <= limit)
			tally_add(&t, V_PASS, ACT_NONE, NULL, "%s: %llu of %llu MiB used",
				  label(m, i), (unsigned long long)g->mem_used_mib,
				  (unsigned long long)g->mem_total_mib);
		else
			tally_add(&t, V_FAIL, n > 0 ? ACT_RESTART_CONTAINER : ACT_RESET_GPU, NULL,
				  "%s: %llu MiB in use on an idle card, more than %llu; held by %s",
				  label(m, i), (unsigned long long)g->mem_used_mib,
				  (unsigned long long)limit,
				  n > 0 ? who : "no process that can be seen from here");
	}
	tally_say(c, C_GPU_MEMORY, &t);
}

/* The image's CUDA (the base image's variable) against what the driver can do. */
static void judge_cuda(struct ctx *c, const struct smi *m)
{
	const char *image = env_value(c->s->envp, "CUDA_VERSION");
	char path[4096], have[32];
	bool compat;

	if (image == NULL || *image == 0 || m->cuda[0] == 0) {
		say(c, C_GPU_CUDA, V_SKIP, ACT_NONE, NULL,
		    image == NULL ? "the image does not say its CUDA (CUDA_VERSION)"
				  : "the driver does not say its CUDA");
		return;
	}
	(void)str_copyn(have, sizeof have, image,
			strcspn(image, ".") < 8 ? strcspn(image, ".") : 0);
	compat = lib_find(c->s->envp, "libcuda.so.1", path, sizeof path) == 0 &&
		 strstr(path, "/compat") != NULL;
	if (compat && (strstr(m->gpu[0].name, "GeForce") != NULL ||
		       str_eq_nocase(m->gpu[0].brand, "GeForce")))
		say(c, C_GPU_CUDA, V_FAIL, ACT_NONE,
		    "take the compat folder off LD_LIBRARY_PATH, or use a newer driver",
		    "CUDA would fail with error 804: the image's compat libcuda (%s) does not work "
		    "on %s",
		    path, m->gpu[0].name);
	else if (compat || version_cmp(m->cuda, image) >= 0)
		say(c, C_GPU_CUDA, V_PASS, ACT_NONE, NULL, "driver %s, image %s%s", m->cuda, image,
		    compat ? " through its compat library" : "");
	else if (version_cmp(m->cuda, have) < 0)
		say(c, C_GPU_CUDA, V_FAIL, ACT_NONE, NULL,
		    "the driver does CUDA %s, the image needs %s and brings no compat library in "
		    "use (error 35 or 804)",
		    m->cuda, image);
	else if (version_cmp(m->cuda, image) < 0 && strncmp(m->cuda, image, strlen(m->cuda)) != 0)
		say(c, C_GPU_CUDA, V_WARN, ACT_NONE, NULL,
		    "driver %s is older than the image's %s: what was compiled runs, PTX may not",
		    m->cuda, image);
	else
		say(c, C_GPU_CUDA, V_PASS, ACT_NONE, NULL, "driver %s, image %s", m->cuda, image);
}

void smi_judge(struct ctx *c, const struct smi *m)
{
	c->facts.n_gpus = m->n_gpus;
	(void)str_copy(c->facts.driver, sizeof c->facts.driver, m->driver);
	(void)str_copy(c->facts.cuda, sizeof c->facts.cuda, m->cuda);
	if (m->n_gpus > 0) {
		(void)str_copy(c->facts.model, sizeof c->facts.model, m->gpu[0].name);
		c->facts.mem_mib = m->gpu[0].mem_total_mib;
	}
	judge_smi(c, m);
	judge_recovery(c, m);
	judge_ecc(c, m);
	judge_remap(c, m);
	judge_fabric(c, m);
	judge_state(c, m);
	judge_processes(c, m);
	judge_memory(c, m);
	judge_cuda(c, m);
}

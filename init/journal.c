/*
 * What earlier lives of this container left behind: a line each in the file `journal`,
 *
 *	v1 ID AT_MS REMOVED SCOPE NAME TAG
 *
 * SCOPE and NAME percent-encoded, TAG the HMAC of the line up to it in hex. A job of the same uid
 * can delete the file or bring an old one back; it cannot name a runner that was not ours.
 */
#include "base/deadline.h"
#include "base/str.h"
#include "gh/hmac.h"
#include "init/state.h"
#include "net/url.h"

#include <errno.h>
#include <string.h>

#define KEPT	8
#define ROOM	2200
#define TAG_HEX ((size_t)(2 * GH_HMAC_BYTES))

static struct {
	struct journal_entry entries[KEPT]; /* oldest first */
	unsigned n;
	char text[KEPT * ROOM];
} book;

static const struct secret *tag_key(const struct gh_credentials *k)
{
	if (secret_present(&k->app_key))
		return &k->app_key;
	if (secret_present(&k->pat))
		return &k->pat;
	return secret_present(&k->token) ? &k->token : &k->jit;
}

static int tag(const struct gh_credentials *k, const char *line, size_t n, char hex[TAG_HEX + 1])
{
	unsigned char raw[GH_HMAC_BYTES];

	if (!secret_present(tag_key(k)) || gh_hmac(tag_key(k), line, n, raw) < 0)
		return -1;
	for (size_t i = 0; i < sizeof raw; i++)
		if (str_fmt(hex + 2 * i, 3, "%02x", raw[i]) < 0)
			return -1;
	return 0;
}

static int unhex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int unescape(char *dst, size_t size, const char *src, size_t n)
{
	size_t o = 0;

	for (size_t i = 0; i < n; i++, o++) {
		char c = src[i];
		if (c == '%') {
			int hi = i + 2 < n ? unhex(src[i + 1]) : -1;
			int lo = i + 2 < n ? unhex(src[i + 2]) : -1;
			if (hi < 0 || lo < 0)
				return -1;
			c = (char)(hi * 16 + lo);
			i += 2;
		}
		if (c == 0 || o + 1 >= size)
			return -1;
		dst[o] = c;
	}
	dst[o] = 0;
	return 0;
}

/* The next word of *p (of at most *n bytes), without the blank after it. */
static const char *word(const char **p, size_t *n, size_t *len)
{
	const char *w = *p, *blank = memchr(*p, ' ', *n);

	*len = blank != NULL ? (size_t)(blank - w) : *n;
	*p += *len + (blank != NULL ? 1 : 0);
	*n -= *len + (blank != NULL ? 1 : 0);
	return w;
}

static int number(const char *w, size_t len, uint64_t max, uint64_t *out)
{
	char digits[24];

	return str_copyn(digits, sizeof digits, w, len) < 0 ? -1 : str_u64(digits, 0, max, out);
}

/* One line of `n` bytes: 0 with *en, or -1 when it is none of ours. */
static int parse(const struct gh_credentials *k, const char *line, size_t n,
		 struct journal_entry *en)
{
	const char *p = line, *w;
	char want[TAG_HEX + 1];
	size_t left, len;
	uint64_t at, removed;
	unsigned char differ = 0;

	if (n < TAG_HEX + 1 || line[n - TAG_HEX - 1] != ' ' ||
	    tag(k, line, n - TAG_HEX - 1, want) < 0)
		return -1;
	for (size_t i = 0; i < TAG_HEX; i++)
		differ |= (unsigned char)(want[i] ^ line[n - TAG_HEX + i]);
	if (differ != 0)
		return -1;
	left = n - TAG_HEX - 1;
	w = word(&p, &left, &len);
	if (len != 2 || memcmp(w, "v1", 2) != 0)
		return -1;
	w = word(&p, &left, &len);
	if (number(w, len, UINT64_MAX, &en->id) < 0)
		return -1;
	w = word(&p, &left, &len);
	if (number(w, len, INT64_MAX, &at) < 0)
		return -1;
	w = word(&p, &left, &len);
	if (number(w, len, 1, &removed) < 0)
		return -1;
	w = word(&p, &left, &len);
	if (unescape(en->scope, sizeof en->scope, w, len) < 0)
		return -1;
	w = word(&p, &left, &len);
	if (left != 0 || unescape(en->name, sizeof en->name, w, len) < 0)
		return -1;
	en->at_ms = (int64_t)at;
	en->removed = removed == 1;
	return 0;
}

static void load(const struct gh_credentials *k)
{
	const char *p = book.text, *end;
	ssize_t n = state_get("journal", book.text, sizeof book.text);

	book.n = 0;
	for (end = p + (n > 0 ? n : 0); p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = nl != NULL ? (size_t)(nl - p) : (size_t)(end - p);
		if (book.n < KEPT && parse(k, p, len, &book.entries[book.n]) == 0)
			book.n++;
		p += len + 1;
	}
}

static int save(const struct gh_credentials *k, struct err *e)
{
	size_t o = 0;

	for (unsigned i = 0; i < book.n; i++) {
		const struct journal_entry *en = &book.entries[i];
		char scope[3 * sizeof en->scope], name[3 * sizeof en->name], hex[TAG_HEX + 1];
		char *line = book.text + o;
		if (url_escape(scope, sizeof scope, en->scope) < 0 ||
		    url_escape(name, sizeof name, en->name) < 0 ||
		    str_fmt(line, ROOM - TAG_HEX - 2, "v1 %llu %lld %d %s %s",
			    (unsigned long long)en->id, (long long)en->at_ms, en->removed, scope,
			    name) < 0 ||
		    tag(k, line, strlen(line), hex) < 0)
			return err_set(e, XC_FILES, 0, "cannot put the runner into the journal");
		o += strlen(line);
		if (str_fmt(book.text + o, sizeof book.text - o, " %s\n", hex) < 0)
			return err_set(e, XC_FILES, 0, "cannot put the runner into the journal");
		o += TAG_HEX + 2;
	}
	if (state_put("journal", 0600, book.text, o) < 0)
		return err_set(e, XC_FILES, errno, "cannot write the journal");
	return 0;
}

int journal_add(const struct gh_credentials *key, const struct journal_entry *en, struct err *e)
{
	load(key);
	if (book.n == KEPT) {
		memmove(&book.entries[0], &book.entries[1], (KEPT - 1) * sizeof book.entries[0]);
		book.n--;
	}
	book.entries[book.n++] = *en;
	return save(key, e);
}

int journal_removed(const struct gh_credentials *key, uint64_t id, struct err *e)
{
	load(key);
	for (unsigned i = 0; i < book.n; i++)
		if (book.entries[i].id == id)
			book.entries[i].removed = true;
	return save(key, e);
}

int journal_open_entry(const struct gh_credentials *key, const char *scope,
		       struct journal_entry *out)
{
	load(key);
	for (unsigned i = book.n; i-- > 0;) {
		if (book.entries[i].removed || strcmp(book.entries[i].scope, scope) != 0)
			continue;
		*out = book.entries[i];
		return 1;
	}
	return 0;
}

/* ---- start times: "v1 QUICK BEGAN ENDED", ENDED 0 while it lives or when it was killed ---------
 */

static struct {
	uint64_t quick, began, ended;
} lives;

static void lives_load(void)
{
	char text[128];
	const char *p = text, *w;
	size_t left, len;
	uint64_t v[3];
	ssize_t n = state_get("lives", text, sizeof text);

	memset(&lives, 0, sizeof lives);
	if (n < 3 || memcmp(text, "v1 ", 3) != 0)
		return;
	left = strcspn(text, "\n") - 3;
	p += 3;
	for (int i = 0; i < 3; i++) {
		w = word(&p, &left, &len);
		if (number(w, len, INT64_MAX, &v[i]) < 0)
			return;
	}
	lives.quick = v[0] < 64 ? v[0] : 64;
	lives.began = v[1];
	lives.ended = v[2];
}

static void lives_save(void)
{
	char text[128];

	if (str_fmt(text, sizeof text, "v1 %llu %llu %llu\n", (unsigned long long)lives.quick,
		    (unsigned long long)lives.began, (unsigned long long)lives.ended) == 0)
		(void)state_put("lives", 0600, text, strlen(text));
}

int64_t journal_start_pause_ms(void)
{
	int64_t now = clock_real_ms(), pause = 0, lasted;

	lives_load();
	lasted = (int64_t)(lives.ended != 0 ? lives.ended : (uint64_t)now) - (int64_t)lives.began;
	/* Began in the future: it was killed during its pause, or the clock was set. */
	if (lives.began != 0 && lasted < JOURNAL_QUICK_MS && lasted >= -JOURNAL_PAUSE_MAX_MS * 2)
		lives.quick++;
	else
		lives.quick = 0;
	if (lives.quick > 2) {
		pause = lives.quick < 12 ? 1000LL << (lives.quick - 3) : JOURNAL_PAUSE_MAX_MS;
		pause = pause < JOURNAL_PAUSE_MAX_MS ? pause : JOURNAL_PAUSE_MAX_MS;
		pause -= pause * (now % 256) / 1024; /* a rack of them should not start as one */
	}
	lives.began = (uint64_t)(now + pause);
	lives.ended = 0;
	lives_save();
	return pause;
}

void journal_life_ended(bool served)
{
	if (lives.began == 0)
		return;
	lives.ended = (uint64_t)clock_real_ms();
	if (served) {
		lives.quick = 0;
		lives.began = 0; /* the next start has nothing to compare with */
	}
	lives_save();
}

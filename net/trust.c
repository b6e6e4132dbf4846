/*
 * The CA certificates. A static binary has no system store unless it reads one: Go's and curl's
 * lists of places are the common knowledge here (Go: src/crypto/x509/root_linux.go).
 */
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/str.h"
#include "net/tlsimpl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CA_FILE_MAX  (8u << 20) /* bytes of one bundle */
#define CA_FILES_MAX 2000	/* files of one directory */
#define CA_CERTS_MAX 5000	/* certificates in all */

static const char *const bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Alpine, Arch, Gentoo */
	"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
	"/etc/ssl/ca-bundle.pem",	      /* SUSE */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/cert.pem", /* Alpine, BSDs */
};

/* Bundles repeat themselves (a directory of links holds each certificate twice and the bundle
 * besides): the last one goes again when it is there already. */
static unsigned drop_double(mbedtls_x509_crt *list)
{
	mbedtls_x509_crt *last = list, *before = NULL;

	while (last->next != NULL) {
		before = last;
		last = last->next;
	}
	for (mbedtls_x509_crt *c = list; before != NULL && c != last; c = c->next) {
		if (c->raw.len != last->raw.len || memcmp(c->raw.p, last->raw.p, c->raw.len) != 0)
			continue;
		before->next = NULL;
		mbedtls_x509_crt_free(last);
		free(last);
		return 0;
	}
	return 1;
}

/* One PEM block or DER: parsed on its own, so that one odd certificate does not hide the rest. */
static unsigned add_block(mbedtls_x509_crt *to, char *begin, char *end)
{
	char saved = *end;
	int r;

	*end = 0;
	r = mbedtls_x509_crt_parse(to, (unsigned char *)begin, (size_t)(end - begin) + 1);
	*end = saved;
	return r == 0 ? drop_double(to) : 0;
}

unsigned tls_ca_parse(mbedtls_x509_crt *to, struct buf *text)
{
	static const char head[] = "-----BEGIN CERTIFICATE-----",
			  tail[] = "-----END CERTIFICATE-----";
	unsigned n = 0;
	char *p, *q, *end;

	if (text->len == 0)
		return 0;
	end = (char *)text->data + text->len;
	if (text->data[0] == 0x30 && mbedtls_x509_crt_parse_der(to, text->data, text->len) == 0)
		return drop_double(to);
	p = (char *)text->data;
	while (n < CA_CERTS_MAX &&
	       (p = memmem(p, (size_t)(end - p), head, sizeof head - 1)) != NULL) {
		q = memmem(p, (size_t)(end - p), tail, sizeof tail - 1);
		if (q == NULL)
			break;
		q += sizeof tail - 1;
		n += add_block(to, p, q);
		p = q;
	}
	return n;
}

static int load_file(struct tls_trust *t, int dirfd, const char *path, struct err *e)
{
	cleanup_buf struct buf text;
	unsigned n;

	buf_init(&text, CA_FILE_MAX);
	if (fs_read(dirfd, path, &text, e) < 0)
		return -1;
	n = tls_ca_parse(&t->ca, &text);
	t->count += n;
	return n > 0 || t->count > 0 ? 0
				     : err_set(e, XC_CONFIG, 0, "%s holds no certificate", path);
}

/* Every regular file, whatever its name: hashed names, .pem and .crt are all in use. */
static int load_dir(struct tls_trust *t, const char *path, struct err *e)
{
	DIR *d = opendir(path);
	unsigned files = 0;
	struct dirent *f;

	if (d == NULL)
		return err_set(e, XC_CONFIG, errno, "cannot open the directory %s", path);
	while ((f = readdir(d)) != NULL && files < CA_FILES_MAX && t->count < CA_CERTS_MAX) {
		struct stat st;
		if (fstatat(dirfd(d), f->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
			continue;
		files++;
		(void)load_file(t, dirfd(d), f->d_name, NULL); /* keys and READMEs lie there too */
	}
	(void)closedir(d);
	return 0;
}

static int load_dirs(struct tls_trust *t, const char *list, struct err *e)
{
	while (*list != 0) {
		size_t n = strcspn(list, ":");
		char path[1024];
		if (n > 0 &&
		    (str_copyn(path, sizeof path, list, n) < 0 || load_dir(t, path, e) < 0))
			return err_prefix(e, "SSL_CERT_DIR");
		list += n + (list[n] == ':' ? 1 : 0);
	}
	return 0;
}

static int load_named(struct tls_trust *t, const char *file, const char *dir, struct err *e)
{
	if (file != NULL && file[0] != 0) {
		(void)str_copy(t->source, sizeof t->source, "SSL_CERT_FILE");
		if (load_file(t, AT_FDCWD, file, e) < 0) {
			if (e != NULL)
				e->code = XC_CONFIG;
			return err_prefix(e, "SSL_CERT_FILE");
		}
	}
	if (dir != NULL && dir[0] != 0) {
		(void)str_copy(t->source, sizeof t->source,
			       t->count > 0 ? "SSL_CERT_FILE and SSL_CERT_DIR" : "SSL_CERT_DIR");
		if (load_dirs(t, dir, e) < 0)
			return -1;
	}
	return t->count > 0
		       ? 0
		       : err_set(e, XC_CONFIG, 0,
				 "no CA certificate in SSL_CERT_DIR: the server's identity cannot "
				 "be checked");
}

int tls_trust_load(struct tls_trust *t, const char *file, const char *dir, struct err *e)
{
	char places[512] = "";

	if ((file != NULL && file[0] != 0) || (dir != NULL && dir[0] != 0))
		return load_named(t, file, dir, e);
	for (size_t i = 0; i < sizeof bundles / sizeof bundles[0]; i++) {
		size_t n = strlen(places);
		if (load_file(t, AT_FDCWD, bundles[i], NULL) == 0)
			return str_copy(t->source, sizeof t->source, bundles[i]);
		(void)str_fmt(places + n, sizeof places - n, "%s%s", n > 0 ? ", " : "", bundles[i]);
	}
	return err_set(e, XC_CONFIG, 0,
		       "no CA certificates: looked at %s. Install ca-certificates in the image, or "
		       "set SSL_CERT_FILE or SSL_CERT_DIR",
		       places);
}

#include "base/str.h"
#include "init/setting.h"
#include "init/user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct user u;
static struct err e;

static void without_a_name_it_is_who_we_are(void **state)
{
	(void)state;
	assert_int_equal(user_find(NULL, &u, &e), 0);
	assert_int_equal(u.uid, geteuid());
	assert_int_equal(u.gid, getegid());
	assert_false(u.switching);
	assert_int_equal(user_find("", &u, &e), 0);
	assert_int_equal(user_become(&u, &e), 0);
}

static void names_and_uids_are_looked_up(void **state)
{
	(void)state;
	assert_int_equal(user_find("root", &u, &e), 0);
	assert_int_equal(u.uid, 0);
	assert_string_equal(u.home, "/root");
	assert_int_equal(user_find("0", &u, &e), 0);
	assert_string_equal(u.name, "root");
	assert_int_equal(user_find("daemon", &u, &e), 0);
	assert_int_equal(u.uid, 1);
	assert_int_equal(u.switching, geteuid() == 0);
	assert_int_equal(u.groups[0], u.gid);
}

static void another_group_takes_the_place_of_all(void **state)
{
	(void)state;
	assert_int_equal(user_find("daemon:tty", &u, &e), 0);
	assert_int_equal(u.gid, 5);
	assert_int_equal(u.n_groups, 1);
	assert_int_equal(user_find("54321:65432", &u, &e), 0);
	assert_int_equal(u.uid, 54321);
	assert_int_equal(u.gid, 65432);
	assert_string_equal(u.name, "");
}

static void what_names_nobody_is_refused_and_changes_nothing(void **state)
{
	static const char *const bad[] = {"nobody-of-that-name",
					  "54321",
					  ":5",
					  "root:no-such-group",
					  "4294967295:1",
					  "-1:1",
					  "1:2:3",
					  ":",
					  "root:"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		memset(&u, 7, sizeof u);
		assert_int_equal(user_find(bad[i], &u, &e), -1);
		assert_int_equal(e.code, XC_CONFIG);
		assert_int_equal(u.uid, 0x07070707);
	}
}

static void rights_follow_owner_group_and_others_in_that_order(void **state)
{
	(void)state;
	memset(&u, 0, sizeof u);
	u.uid = 1000;
	u.gid = 1000;
	u.groups[u.n_groups++] = 1000;
	u.groups[u.n_groups++] = 44;
	assert_true(config_user_may(&u, 1000, 0, 0400, 4));
	assert_false(config_user_may(&u, 1000, 0, 0077, 4)); /* the owner's bits alone */
	assert_true(config_user_may(&u, 0, 1000, 0040, 4));
	assert_true(config_user_may(&u, 0, 44, 0060, 6));
	assert_false(config_user_may(&u, 0, 44, 0706, 4));
	assert_true(config_user_may(&u, 0, 0, 0004, 4));
	assert_false(config_user_may(&u, 0, 0, 0770, 4));
	u.uid = 0;
	assert_true(config_user_may(&u, 5, 5, 0000, 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_name_it_is_who_we_are),
		cmocka_unit_test(names_and_uids_are_looked_up),
		cmocka_unit_test(another_group_takes_the_place_of_all),
		cmocka_unit_test(what_names_nobody_is_refused_and_changes_nothing),
		cmocka_unit_test(rights_follow_owner_group_and_others_in_that_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The file under test is included, so that its parsers can be called. */
#include "init/killtree.c" // NOLINT

#include "base/deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

static void the_end_of_a_name_is_its_last_parenthesis(void **state)
{
	struct stat_line l;

	(void)state;
	assert_int_equal(
		parse_stat("17 (a) b) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 5", &l), 0);
	assert_string_equal(l.comm, "a) b");
	assert_int_equal(l.parent, 1);
	assert_int_equal(l.state, 'S');
	assert_int_equal(l.threads, 9);
}

static void a_name_may_look_like_a_line(void **state)
{
	struct stat_line l;

	(void)state;
	assert_int_equal(parse_stat("17 () Z 99 (x) R 4 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1", &l), 0);
	assert_int_equal(l.parent, 4);
	assert_int_equal(l.state, 'R');
}

static void a_long_name_is_cut(void **state)
{
	struct stat_line l;

	(void)state;
	assert_int_equal(parse_stat("1 (abcdefghijklmnopqrstuvwxyz) S 0 1", &l), 0);
	assert_string_equal(l.comm, "abcdefghijklmno");
}

static void what_is_no_stat_line_is_refused(void **state)
{
	static const char *const bad[] = {"",	       "17",	 "17 (a",    "17 a) S 1",
					  "17 )( S 1", "17 (a)", "17 (a) S", "17 (a) S x"};
	struct stat_line l;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(parse_stat(bad[i], &l), -1);
}

static void numbers_do_not_wrap(void **state)
{
	const char *s = " 2147483647 99999999999999999999 x";

	(void)state;
	assert_int_equal(number(&s), 2147483647);
	assert_int_equal(number(&s), -1);
	assert_int_equal(number(&s), -1);
	assert_string_equal(s, "x");
}

static void the_index_holds_colliding_pids_apart(void **state)
{
	(void)state;
	wipe();
	add(5, 1);
	add(5 + SLOTS, 1);
	add(5 + 2 * SLOTS, 1);
	add(6, 1);
	add(5, 1);
	assert_int_equal(tree.n, 4);
	assert_true(seen(5) && seen(5 + SLOTS) && seen(5 + 2 * SLOTS) && seen(6));
	assert_false(seen(7) || seen(5 + 3 * SLOTS) || seen(0) || seen(-1));
	wipe();
	assert_false(seen(5) || seen(6));
}

static void a_tree_larger_than_the_room_is_said_to_be_full(void **state)
{
	(void)state;
	wipe();
	for (int i = 1; i <= TREE_MAX + 10; i++)
		add(i, 1);
	assert_int_equal(tree.n, TREE_MAX);
	assert_true(tree.full);
	wipe();
	assert_false(tree.full);
}

/* A family below this process: a child with a child of its own, both asleep. */
static pid_t family(pid_t *grandchild)
{
	int fds[2];
	pid_t p;

	assert_int_equal(pipe(fds), 0);
	p = fork();
	if (p == 0) {
		pid_t q = fork();
		if (q == 0) {
			(void)setsid();
			(void)prctl(PR_SET_NAME, "grand child");
			(void)!write(fds[1], "x", 1);
			for (;;)
				(void)pause();
		}
		(void)!write(fds[1], &q, sizeof q);
		for (;;)
			(void)pause();
	}
	char room[sizeof *grandchild + 1];
	size_t got = 0;
	while (got < sizeof room) {
		ssize_t r = read(fds[0], room + got, sizeof room - got);
		assert_true(r > 0);
		got += (size_t)r;
	}
	/* The "x" comes before or behind the number. */
	memcpy(grandchild, room[0] == 'x' ? room + 1 : room, sizeof *grandchild);
	(void)close(fds[0]);
	(void)close(fds[1]);
	return p;
}

static void reap_all(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

static void nothing_below_is_zero(void **state)
{
	(void)state;
	assert_int_equal(killtree_pass(NULL, 0), 0);
	assert_int_equal(killtree_signal(NULL, 0, SIGTERM), 0);
}

static void a_pass_kills_children_and_theirs(void **state)
{
	pid_t q;

	(void)state;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)family(&q);
	assert_true(killtree_has(getpid(), "grand child"));
	assert_false(killtree_has(getpid(), "nobody"));
	assert_int_equal(killtree_pass(NULL, 0), 2);
	reap_all();
	assert_int_equal(kill(q, 0), -1);
	assert_int_equal(killtree_pass(NULL, 0), 0);
}

static void the_spared_and_what_is_below_them_live_on(void **state)
{
	char left[256];
	pid_t p, q, victim;

	(void)state;
	p = family(&q);
	victim = fork();
	if (victim == 0)
		for (;;)
			(void)pause();
	assert_int_equal(killtree_pass(&p, 1), 1);
	assert_int_equal(waitpid(victim, NULL, 0), victim);
	assert_int_equal(kill(p, 0), 0);
	assert_int_equal(kill(q, 0), 0);
	assert_int_equal(killtree_left(&p, 1, left, sizeof left), 0);
	assert_int_equal(killtree_left(NULL, 0, left, sizeof left), 2);
	assert_non_null(strstr(left, "(grand child, uid "));
	assert_int_equal(killtree_left(NULL, 0, left, 20), 2); /* counted even where no name fits */
	assert_int_equal(killtree_pass(NULL, 0), 2);
	reap_all();
}

static void without_children_files_the_parents_tell(void **state)
{
	struct family f = {getpid(), NULL, 0, 0, false};
	pid_t p, q;

	(void)state;
	p = family(&q);
	wipe();
	assert_int_equal(scan(&f), 0);
	assert_int_equal(tree.n, 2);
	assert_true(seen(p) && seen(q));
	wipe();
	assert_int_equal(killtree_signal(NULL, 0, SIGKILL), 2);
	reap_all();
}

static void a_process_of_another_family_is_not_hit(void **state)
{
	/* As if the pid had been found below somebody and been used again since. */
	pid_t p = fork();
	struct node n = {p, 999999};

	(void)state;
	if (p == 0)
		for (;;)
			(void)pause();
	wipe();
	assert_true(hit(&(struct node){p, getpid()}, 0));
	n.pid = getppid(); /* whose parent is neither 999999 nor we */
	assert_false(hit(&n, 0));
	assert_int_equal(kill(p, SIGKILL), 0);
	reap_all();
}

static void a_zombie_is_nothing_to_kill(void **state)
{
	siginfo_t si;
	pid_t p = fork();

	(void)state;
	if (p == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)p, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(killtree_pass(NULL, 0), 0);
	reap_all();
}

static void all_is_never_killed_by_a_process_that_is_not_pid_1(void **state)
{
	(void)state;
	assert_int_not_equal(getpid(), 1);
	assert_false(killtree_all());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_name_is_its_last_parenthesis),
		cmocka_unit_test(a_name_may_look_like_a_line),
		cmocka_unit_test(a_long_name_is_cut),
		cmocka_unit_test(what_is_no_stat_line_is_refused),
		cmocka_unit_test(numbers_do_not_wrap),
		cmocka_unit_test(the_index_holds_colliding_pids_apart),
		cmocka_unit_test(a_tree_larger_than_the_room_is_said_to_be_full),
		cmocka_unit_test(nothing_below_is_zero),
		cmocka_unit_test(a_pass_kills_children_and_theirs),
		cmocka_unit_test(the_spared_and_what_is_below_them_live_on),
		cmocka_unit_test(without_children_files_the_parents_tell),
		cmocka_unit_test(a_process_of_another_family_is_not_hit),
		cmocka_unit_test(a_zombie_is_nothing_to_kill),
		cmocka_unit_test(all_is_never_killed_by_a_process_that_is_not_pid_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "probes/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct smi m;

static int parse(const char *xml)
{
	return smi_parse(xml, strlen(xml), &m);
}

static char *read_data(const char *name, size_t *len)
{
	char path[256];
	FILE *f;
	char *text = calloc(1, 1 << 20);

	(void)snprintf(path, sizeof path, "tests/probes/data/%s", name);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(text);
	*len = fread(text, 1, (1 << 20) - 1, f);
	(void)fclose(f);
	return text;
}

static void a_healthy_report_is_read(void **state)
{
	size_t n;
	char *xml = read_data("healthy.xml", &n);

	(void)state;
	assert_int_equal(smi_parse(xml, n, &m), 0);
	assert_int_equal(m.n_gpus, 1);
	assert_int_equal(m.attached, 1);
	assert_string_equal(m.driver, "580.159.04");
	assert_string_equal(m.cuda, "13.0");
	assert_string_equal(m.gpu[0].bus, "00000000:01:00.0");
	assert_string_equal(m.gpu[0].name, "NVIDIA H200");
	assert_string_equal(m.gpu[0].recovery, "None");
	assert_string_equal(m.gpu[0].fabric_state, "Completed");
	assert_true(m.gpu[0].ecc_read);
	assert_int_equal(m.gpu[0].ecc_uncorrected, 0);
	assert_int_equal(m.gpu[0].mem_total_mib, 143771);
	assert_string_equal(m.gpu[0].throttle, "");
	free(xml);
}

static void a_report_cut_anywhere_is_refused_and_never_read_past_its_end(void **state)
{
	size_t n;
	char *xml = read_data("mig.xml", &n), *exact;

	(void)state;
	while (n > 0 && xml[n - 1] != '>')
		n--;
	for (size_t cut = 0; cut < n; cut += cut + 300 < n ? 7 : 1) {
		exact = malloc(cut + 1); /* the sanitizer watches its end */
		assert_non_null(exact);
		memcpy(exact, xml, cut);
		exact[cut] = 0;
		assert_int_equal(smi_parse(exact, cut, &m), -1);
		free(exact);
	}
	assert_int_equal(smi_parse(xml, n, &m), 0);
	free(xml);
}

static void corrected_and_aggregate_errors_do_not_count(void **state)
{
	(void)state;
	assert_int_equal(
		parse("<nvidia_smi_log><gpu id=\"a\"><ecc_errors><volatile><dram_correctable>9</"
		      "dram_correctable><sram_uncorrectable>2</sram_uncorrectable></volatile>"
		      "<aggregate><dram_uncorrectable>40</dram_uncorrectable></aggregate>"
		      "</ecc_errors></gpu></nvidia_smi_log>"),
		0);
	assert_int_equal(m.gpu[0].ecc_uncorrected, 2);
}

static void the_double_bit_totals_of_old_cards_count(void **state)
{
	(void)state;
	assert_int_equal(
		parse("<nvidia_smi_log><gpu id=\"a\"><ecc_errors><volatile><single_bit><total>5"
		      "</total></single_bit><double_bit><device_memory>N/A</device_memory>"
		      "<total>1</total></double_bit></volatile></ecc_errors></gpu></"
		      "nvidia_smi_log>"),
		0);
	assert_int_equal(m.gpu[0].ecc_uncorrected, 1);
}

static void what_is_not_available_stays_unread(void **state)
{
	(void)state;
	assert_int_equal(
		parse("<nvidia_smi_log><attached_gpus>N/A</attached_gpus><gpu id=\"a\">"
		      "<gpu_recovery_action>[N/A]</gpu_recovery_action><fb_memory_usage><total>N/A"
		      "</total><used>Not "
		      "Supported</used></fb_memory_usage></gpu></nvidia_smi_log>"),
		0);
	assert_int_equal(m.attached, -1);
	assert_string_equal(m.gpu[0].recovery, "");
	assert_false(m.gpu[0].mem_read);
	assert_false(m.gpu[0].ecc_read);
}

static void an_error_in_any_field_is_kept_with_its_name(void **state)
{
	(void)state;
	assert_int_equal(parse("<nvidia_smi_log><gpu id=\"a\"><x><fan_speed>ERR!</fan_speed></x>"
			       "<y>Unknown Error</y></gpu></nvidia_smi_log>"),
			 0);
	assert_string_equal(m.gpu[0].bad_field, "fan_speed: ERR!");
}

static void processes_belong_to_their_card_and_are_made_printable(void **state)
{
	(void)state;
	assert_int_equal(
		parse("<nvidia_smi_log><gpu id=\"a\"></gpu><gpu id=\"b\"><processes><process_info>"
		      "<pid>7</pid><process_name>a&amp;b&lt;\x1b[m&bogus;</process_name>"
		      "<used_memory>3 MiB</used_memory></process_info></processes></gpu>"
		      "</nvidia_smi_log>"),
		0);
	assert_int_equal(m.n_procs, 1);
	assert_int_equal(m.proc[0].gpu, 1);
	assert_int_equal(m.proc[0].pid, 7);
	assert_string_equal(m.proc[0].name, "a&b<?[m&bogus;");
}

static void more_cards_and_processes_than_there_is_room_for_are_left_out(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	(void)buf_puts(&b, "<nvidia_smi_log>");
	for (int i = 0; i < 100; i++)
		(void)buf_puts(&b, "<gpu id=\"x\"><process_info><pid>1</pid></process_info></gpu>");
	(void)buf_puts(&b, "</nvidia_smi_log>");
	assert_int_equal(smi_parse(buf_str(&b), b.len, &m), 0);
	assert_int_equal(m.n_gpus, SMI_GPUS_MAX);
	assert_int_equal(m.n_procs, SMI_PROCS_MAX);
	assert_int_equal(m.n_procs_all, 100);
	buf_free(&b);
}

static void what_is_not_that_xml_is_refused(void **state)
{
	static const char *const bad[] = {"",
					  "No devices were found",
					  "<html><body></body></html>",
					  "<nvidia_smi_log>",
					  "<nvidia_smi_log></nvidia_smi>",
					  "<nvidia_smi_log></nvidia_smi_log><more>",
					  "</nvidia_smi_log>",
					  "<nvidia_smi_log><a></b></nvidia_smi_log>",
					  "<>",
					  "<nvidia_smi_log",
					  "<nvidia_smi_log/"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(parse(bad[i]), -1);
}

static void nesting_without_end_is_refused(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	for (int i = 0; i < 1000; i++)
		(void)buf_puts(&b, "<a>");
	assert_int_equal(smi_parse(buf_str(&b), b.len, &m), -1);
	buf_free(&b);
}

static void versions_are_found_in_names_and_compared_as_numbers(void **state)
{
	char v[32];

	(void)state;
	assert_int_equal(lib_version("/x.so.9/libcuda.so.580.159.04", v, sizeof v), 0);
	assert_string_equal(v, "580.159.04");
	assert_int_equal(lib_version("/usr/lib/libcuda.so.1", v, sizeof v), -1);
	assert_int_equal(lib_version("/usr/lib/libcuda.so", v, sizeof v), -1);
	assert_true(version_cmp("580.9", "580.10") < 0);
	assert_true(version_cmp("13.0", "12.9.1") > 0);
	assert_true(version_cmp("12.9", "12.9.1") < 0);
	assert_int_equal(version_cmp("580.159.04", "580.159.4"), 0);
	assert_int_equal(version_cmp("580", "580.0"), 0);
	assert_int_equal(version_cmp("580.x", "580.y"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_healthy_report_is_read),
		cmocka_unit_test(a_report_cut_anywhere_is_refused_and_never_read_past_its_end),
		cmocka_unit_test(corrected_and_aggregate_errors_do_not_count),
		cmocka_unit_test(the_double_bit_totals_of_old_cards_count),
		cmocka_unit_test(what_is_not_available_stays_unread),
		cmocka_unit_test(an_error_in_any_field_is_kept_with_its_name),
		cmocka_unit_test(processes_belong_to_their_card_and_are_made_printable),
		cmocka_unit_test(more_cards_and_processes_than_there_is_room_for_are_left_out),
		cmocka_unit_test(what_is_not_that_xml_is_refused),
		cmocka_unit_test(nesting_without_end_is_refused),
		cmocka_unit_test(versions_are_found_in_names_and_compared_as_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

init_src := init/config.c init/config_env.c init/config_find.c init/config_set.c init/config_table.c init/user.c

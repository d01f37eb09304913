/* The suite against the embedded engine: as configured by default, and with a journal and heads so
 * small that sealing never stops. */
#include "engines.h"

int main(int argc, char **argv)
{
	struct contract_engine plain = engine_lmdb("lmdb", 0, 0);
	int failed = contract_run(&plain, argc, argv);
	struct contract_engine tiny = engine_lmdb("lmdb with tiny limits", 16384, 16384);
	return failed + contract_run(&tiny, argc, argv);
}

/* The model test of the embedded engine, with limits so small that it seals all the time, and once
 * with its own. */
#include "engines.h"
#include "model.h"

int main(int argc, char **argv)
{
	struct contract_engine tiny = engine_lmdb("lmdb with tiny limits", 16384, 16384);
	int failed = model_main(&tiny, argc, argv);
	struct contract_engine plain = engine_lmdb("lmdb", 0, 0);
	return failed || model_main(&plain, argc, argv) ? 1 : 0;
}

/* The suite against the naive engine. */
#include "engines.h"

int main(int argc, char **argv)
{
	const struct contract_engine engine = engine_naive();
	return contract_run(&engine, argc, argv);
}

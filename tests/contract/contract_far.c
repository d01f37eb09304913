/* The suite against the far store. */
#include "engines.h"

int main(int argc, char **argv)
{
	const struct contract_engine engine = engine_far(1);
	return contract_run(&engine, argc, argv);
}

/* The test of the model of streams on a far store (tools/planted.h): stream_far_plants.py has the
 * mistakes. */
#include "plants.h"
#include "stream_far.h"
#include "tools/planted.h"

enum { SEEDS_MAX = 200 };

int main(int argc, char **argv)
{
	return planted_main(argc, argv, run_seed, SEEDS_MAX);
}

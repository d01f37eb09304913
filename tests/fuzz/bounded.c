/* Calls a target, and asserts that no input takes more of a loop's time than a turn may: parsers
 * run on loops. Counted is CPU time, so that a busy machine does not matter. */
#undef LLVMFuzzerTestOneInput
#include "base/clock.h"
#include "loop/loop.h"

enum { SANITIZED_FACTOR = 20 };

int fuzz_one_input(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t begun_us = clock_thread_us();
	int result = fuzz_one_input(data, size);
	ASSERT(clock_thread_us() - begun_us < LOOP_TURN_MAX_MS * 1000 * SANITIZED_FACTOR);
	return result;
}

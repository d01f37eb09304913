#include "base/base.h"

int main(void)
{
	puts(GRANARY_VERSION);
	return 0;
}

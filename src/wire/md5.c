#include "wire/md5.h"

#include <openssl/evp.h>

int md5_hex(const struct slice *pieces, size_t count, char hex[MD5_HEX_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t md5[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	ASSERT(context); /* no memory */
	bool good = EVP_DigestInit_ex(context, EVP_md5(), NULL);
	for (size_t i = 0; i < count && good; i++)
		good = EVP_DigestUpdate(context, pieces[i].data, pieces[i].len);
	good = good && EVP_DigestFinal_ex(context, md5, &len);
	EVP_MD_CTX_free(context);
	if (!good)
		return ERR_NOT_FOUND;
	ASSERT(len * 2 == MD5_HEX_BYTES);
	for (size_t i = 0; i < len; i++) {
		hex[2 * i] = digits[md5[i] >> 4];
		hex[2 * i + 1] = digits[md5[i] & 0xf];
	}
	return 0;
}

/* The functions for programs in C that are easier in C than in Rust: those with arguments of any
 * number, and those of a C library. They are compiled with every program, and what it does not use
 * is not linked. */

#include "diapason.h"

/* A text that is being written. `length` counts what does not fit, too. */
struct text {
    char *bytes;
    size_t room, length;
};

static void put(struct text *text, char c)
{
    if (text->length + 1 < text->room) {
        text->bytes[text->length] = c;
    }
    text->length++;
}

/* How a conversion is to be padded. */
struct field {
    bool left, zero;
    int width, precision;
};

static void padded(struct text *text, const struct field *field, const char *sign,
                   const char *bytes, size_t length)
{
    size_t whole = strlen(sign) + length;
    size_t pad = field->width > 0 && (size_t)field->width > whole ? (size_t)field->width - whole : 0;
    for (; pad > 0 && !field->left && !field->zero; pad--) {
        put(text, ' ');
    }
    for (; *sign; sign++) {
        put(text, *sign);
    }
    for (; pad > 0 && !field->left; pad--) {
        put(text, '0');
    }
    for (size_t i = 0; i < length; i++) {
        put(text, bytes[i]);
    }
    for (; pad > 0; pad--) {
        put(text, ' ');
    }
}

/* Writes the digits before `end`; returns where they begin. */
static char *digits(char *end, uint64_t value, unsigned base, bool capitals)
{
    do {
        *--end = (capitals ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
        value /= base;
    } while (value > 0);
    return end;
}

static void number(struct text *text, const struct field *field, const char *sign, uint64_t value,
                   unsigned base, bool capitals)
{
    char room[24], *end = room + sizeof room;
    char *start = digits(end, value, base, capitals);
    padded(text, field, sign, start, (size_t)(end - start));
}

static void fraction(struct text *text, const struct field *field, double value)
{
    int places = field->precision < 0 ? 6 : field->precision > 9 ? 9 : field->precision;
    const char *sign = value < 0 ? "-" : "";
    double size = value < 0 ? -value : value;
    if (!(size < 9e9)) { /* not a number, too */
        padded(text, field, sign, value != value ? "nan" : "big", 3);
        return;
    }
    uint64_t scale = 1;
    for (int i = 0; i < places; i++) {
        scale *= 10;
    }
    uint64_t scaled = (uint64_t)(size * (double)scale + 0.5);
    char room[32], *end = room + sizeof room, *start = end;
    if (places > 0) {
        start = digits(end, scaled % scale, 10, false);
        while (end - start < places) {
            *--start = '0';
        }
        *--start = '.';
    }
    start = digits(start, scaled / scale, 10, false);
    padded(text, field, sign, start, (size_t)(end - start));
}

/* Takes the next argument of an integer conversion, of the length that `longs` says. */
static uint64_t argument(va_list *list, int longs, bool is_signed)
{
    if (longs >= 1) {
        return is_signed ? (uint64_t)va_arg(*list, long) : va_arg(*list, unsigned long);
    }
    if (is_signed) {
        int value = va_arg(*list, int);
        return (uint64_t)(int64_t)(longs == -1 ? (short)value : longs <= -2 ? (signed char)value
                                                                           : value);
    }
    unsigned value = va_arg(*list, unsigned);
    return longs == -1 ? (unsigned short)value : longs <= -2 ? (unsigned char)value : value;
}

/* Carries out the conversion at `format`, behind its %; returns where the text goes on. */
static const char *conversion(struct text *text, const char *format, va_list *list)
{
    struct field field = {.precision = -1};
    int longs = 0;
    for (; *format == '-' || *format == '0'; format++) {
        *(*format == '-' ? &field.left : &field.zero) = true;
    }
    for (; *format >= '0' && *format <= '9' && field.width < 1000; format++) {
        field.width = field.width * 10 + (*format - '0');
    }
    if (*format == '.') {
        field.precision = 0;
        for (format++; *format >= '0' && *format <= '9' && field.precision < 1000; format++) {
            field.precision = field.precision * 10 + (*format - '0');
        }
    }
    for (; *format == 'l' || *format == 'z' || *format == 'h'; format++) {
        longs += *format == 'h' ? -1 : 1;
    }
    switch (*format) {
    case 'd':
    case 'i': {
        int64_t value = (int64_t)argument(list, longs, true);
        uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
        number(text, &field, value < 0 ? "-" : "", size, 10, false);
        break;
    }
    case 'u':
        number(text, &field, "", argument(list, longs, false), 10, false);
        break;
    case 'x':
    case 'X':
        number(text, &field, "", argument(list, longs, false), 16, *format == 'X');
        break;
    case 'p':
        number(text, &field, "0x", (uint64_t)(uintptr_t)va_arg(*list, void *), 16, false);
        break;
    case 'f':
        fraction(text, &field, va_arg(*list, double));
        break;
    case 'c': {
        char c = (char)va_arg(*list, int);
        field.zero = false;
        padded(text, &field, "", &c, 1);
        break;
    }
    case 's': {
        const char *bytes = va_arg(*list, const char *);
        size_t length = 0, most = field.precision < 0 ? SIZE_MAX : (size_t)field.precision;
        bytes = bytes ? bytes : "(null)";
        while (length < most && bytes[length]) {
            length++;
        }
        field.zero = false;
        padded(text, &field, "", bytes, length);
        break;
    }
    case '\0':
        return format;
    default: /* %% and what is not known */
        put(text, *format);
    }
    return format + 1;
}

int dia_format_list(char *bytes, size_t room, const char *format, va_list list)
{
    struct text text = {bytes, bytes ? room : 0, 0};
    va_list rest;
    va_copy(rest, list);
    while (format && *format) {
        char c = *format++;
        if (c == '%') {
            format = conversion(&text, format, &rest);
        } else {
            put(&text, c);
        }
    }
    va_end(rest);
    if (text.room > 0) {
        text.bytes[text.length < text.room ? text.length : text.room - 1] = '\0';
    }
    return text.length < INT32_MAX ? (int)text.length : INT32_MAX;
}

int dia_format(char *bytes, size_t room, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = dia_format_list(bytes, room, format, list);
    va_end(list);
    return length;
}

void dia_logf(const char *format, ...)
{
    char line[DIA_LINE_BYTES + 1];
    va_list list;
    va_start(list, format);
    dia_format_list(line, sizeof line, format, list);
    va_end(list);
    dia_log(line);
}

/* The bytes are volatile, so that no compiler makes a call of strlen of this loop. */
size_t strlen(const char *text)
{
    const volatile char *end = text;
    while (*end) {
        end++;
    }
    return (size_t)((const char *)end - text);
}

int strncmp(const char *a, const char *b, size_t length)
{
    for (; length > 0; length--, a++, b++) {
        unsigned char x = (unsigned char)*a, y = (unsigned char)*b;
        if (x != y || x == 0) {
            return x - y;
        }
    }
    return 0;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

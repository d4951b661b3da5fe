"""Which instructions the processor has."""

cdef extern from *:
    """
    #if defined(__x86_64__)
    #include <cpuid.h>
    static int find_x86_64_v3(void) {
        unsigned a, b, c, d, low, high;
        const unsigned first = bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C;
        const unsigned seventh = bit_AVX2 | bit_BMI | bit_BMI2;
        if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first) return 0;
        /* the system must save the upper halves of the registers, too */
        __asm__ volatile ("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        if ((low & 6) != 6) return 0;
        if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & seventh) != seventh) return 0;
        return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & (1u << 5)) != 0;  /* LZCNT */
    }
    #else
    static int find_x86_64_v3(void) { return 0; }
    #endif
    """
    int find_x86_64_v3() noexcept

# whether the processor has the instructions of the level x86-64-v3: AVX2 and what came with it
HAS_X86_64_V3 = bool(find_x86_64_v3())

# bench: f(i int64[4096 < 1000], table float[1000x128]) within 1e-6
def f(i, table):
    return table[i]

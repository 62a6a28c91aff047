// Linked so that its hooks are hidden, or not at all.
int main() { return 0; }

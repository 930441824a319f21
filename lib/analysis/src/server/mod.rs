//! VCPUs that are servers: response of budget, supply, demand, and the tests that admit them.

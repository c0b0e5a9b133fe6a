// The version of the whole house: daemon, client and simulator are released together.

/// What `vehicled --version`, `vehiclectl version` and GetInfo say.
public let version = "0.1.0"

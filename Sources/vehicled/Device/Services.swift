// The services of the daemon, as passed to each device.

extension Device {
  /// The services of the daemon that a device uses.
  struct Services {
    let disk: Disk
    let links: LinkOpener
    let guardian: Guardian
    let http: HTTPClient
  }
}

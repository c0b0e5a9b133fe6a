// What a device uses of the daemon.

extension Device {
  /// The services of the daemon that a device uses.
  struct Services {
    let disk: Disk
    let links: LinkOpener
    let guardian: Guardian
    let http: HTTPClient
  }
}

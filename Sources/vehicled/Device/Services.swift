// The services of the daemon, as passed to each device.

extension Device {
  struct Services {
    let disk: Disk
    let links: LinkOpener
    let guardian: Guardian
    let http: HTTPClient
  }
}

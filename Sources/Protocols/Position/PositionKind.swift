// The configuration of the `position` kind: a GPS receiver, through gpsd. The position is personal data, so no message contains a
// coordinate.
// Source: gpsd_json(5), gpsd(8): the protocol, its port, and the paths of receivers.

extension Kind {
  /// The position from a GPS receiver.
  public static let position = Kind(
    name: "position",
    summary: "The position, speed and time from a GPS receiver, through gpsd",
    links: [
      LinkRole(
        schemes: ["tcp"], example: "tcp:localhost:2947",
        remedy: "check that gpsd runs there: systemctl status gpsd.socket; check host and port in the configuration")
    ],
    options: [
      Option("gps", ValueRule(.string), help: "Path of the receiver in gpsd; default: the first one with a fix"),
      Option(
        "max-age", ValueRule(.int, unit: "s", range: 2...60), default: .int(5),
        help: "Time after which a position expires if the receiver reports no newer one"),
    ]
  ) { setup throws(OptionError) in
    PositionMachine(try PositionSettings(setup))
  }
}

/// The configuration of a position device.
struct PositionSettings: Sendable {
  /// The path of the configured receiver, or nil to use the first one with a fix.
  var receiver: String?
  /// How long a position is valid.
  var maxAge: Nanoseconds = 5 * .second

  init() {}

  /// Parses the keys; throws for an invalid one.
  init(_ setup: Setup) throws(OptionError) {
    if case .string(let path)? = setup.options["gps"] {
      // Reported paths are limited in the same way.
      let limit = GPSDReport.maxTextLength
      guard (1...limit).contains(path.utf8.count), path == visible(path, limit: limit), !path.contains(" ") else {
        throw OptionError("gps", "not the path of a receiver; write it as gpsd lists it, as in \"/dev/ttyUSB0\"")
      }
      receiver = path
    }
    if let seconds = setup.options["max-age"]?.number { maxAge = Nanoseconds(seconds) * .second }
  }
}

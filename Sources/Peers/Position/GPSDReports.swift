// The lines of a simulated gpsd.
// Source: gpsd_json(5); recorded from gpsd 3.22 with an NMEA 0183 receiver.

import Protocols

enum GPSDReports {
  static let receiver = "/dev/ttyUSB0"
  static let secondReceiver = "/dev/ttyACM0"
  static let watch =
    #"{"class":"WATCH","enable":true,"json":true,"nmea":false,"raw":0,"scaled":false,"timing":false,"split24":false,"pps":false}"#

  static func version(isOld: Bool) -> String {
    let release = isOld ? "3.9" : "3.22"
    return #"{"class":"VERSION","release":"\#(release)","rev":"\#(release)","proto_major":3,"proto_minor":\#(isOld ? 8 : 14)}"#
  }

  static func devices(_ paths: [String]) -> String {
    #"{"class":"DEVICES","devices":[\#(paths.map { device($0, isActive: true) }.joined(separator: ","))]}"#
  }

  static func device(_ path: String, isActive: Bool) -> String {
    isActive
      ? #"{"class":"DEVICE","path":"\#(path)","driver":"NMEA0183","activated":"2026-06-01T12:00:00.000Z","flags":1,"bps":4800}"#
      : #"{"class":"DEVICE","path":"\#(path)","activated":0}"#
  }

  static func error(_ message: String) -> String {
    #"{"class":"ERROR","message":"\#(message.filter { $0 != "\"" && $0 != "\\" })"}"#
  }

  static func noFix(_ path: String) -> String { #"{"class":"TPV","device":"\#(path)","mode":1}"# }
  static let early = #"{"class":"TPV","device":"\#(receiver)","mode":3,"epv":4.600,"eph":3.800}"#

  /// 2026-06-01T12:00:00Z.
  private static let start = Int64(1_780_315_200)

  /// The report of a fix, `seconds` after `start`.
  static func fix(_ point: GPSDLoop.Point, speed: Double, at seconds: Double, isThreeD: Bool, isOld: Bool, isSparse: Bool) -> String {
    let whole = WallTime.isoTime((start + Int64(seconds)) * 1_000_000).dropLast()
    let milliseconds = String(Int(seconds * 1000) % 1000 + 1000).dropFirst()
    var line = #"{"class":"TPV","device":"\#(receiver)","mode":\#(isThreeD ? 3 : 2),"time":"\#(whole).\#(milliseconds)Z""#
    func add(_ key: String, _ number: Double) { line += ",\"\(key)\":\(Value.text(number))" }
    add("lat", point.latitude)
    add("lon", point.longitude)
    guard !isSparse else { return line + "}" }
    add("track", point.track)
    add("speed", speed / 3.6)
    if isThreeD {
      if !isOld { for (key, height) in [("altHAE", 163.0), ("altMSL", 123)] { add(key, height) } }
      add("alt", 123)
      add("epv", 4.6)
    }
    if isOld { for (key, error) in [("epx", 3.0), ("epy", 4)] { add(key, error) } } else { add("eph", 3.8) }
    return line + "}"
  }

  /// The report of 12 satellites, of which 9 are used.
  static func sky(isOld: Bool) -> String {
    let satellites = (1...12).map { #"{"PRN":\#($0),"el":\#($0 * 7),"az":\#($0 * 29),"ss":\#(20 + $0),"used":\#($0 <= 9)}"# }
    let counts = isOld ? "" : #""nSat":12,"uSat":9,"#
    return #"{"class":"SKY","device":"\#(receiver)",\#(counts)"hdop":1.00,"satellites":[\#(satellites.joined(separator: ","))]}"#
  }
}

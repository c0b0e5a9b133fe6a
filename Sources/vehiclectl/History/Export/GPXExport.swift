// Formats an export as GPX 1.1: the positions of one device are a track with a new segment after each gap, and the values of other
// properties are extensions of each point. No I/O.
// Source: the GPX 1.1 schema, https://www.topografix.com/GPX/1/1/ (order of the elements of a point).

import Protocols
import Varlink

struct GPXExport: ExportFormat {
  /// The namespace of the extensions.
  static let namespace = "urn:vehicled:history"
  /// The maximum time in µs between two positions of a segment.
  private static let maxInterval = 30_000_000
  static let (latitude, longitude, altitude) = ("latitude", "longitude", "altitude")

  private let series: [HistoryContract.Series]
  private let device: String
  /// The latest value of each series.
  private var values: [Value?]
  private var lastPoint: Int?
  private var isInSegment = false
  /// The number of points.
  private(set) var count = 0

  /// Creates a track from the positions of a device.
  init(_ series: [HistoryContract.Series], device: String) {
    (self.series, self.device) = (series, device)
    values = [Value?](repeating: nil, count: series.count)
  }

  func start() -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <gpx version="1.1" creator="vehiclectl \(version)" xmlns="http://www.topografix.com/GPX/1/1" xmlns:v="\(Self.namespace)">
    <trk><name>\(XMLText.escaped(device))</name>

    """
  }

  mutating func row(_ row: ExportRow) -> String {
    var isPosition = false
    for (index, sample) in row.samples {
      values[index] = sample.value
      let name = series[index].property
      if series[index].device == device, name == Self.latitude || name == Self.longitude { isPosition = true }
    }
    guard isPosition else { return "" }
    guard let latitude = number(Self.latitude), let longitude = number(Self.longitude) else { return endSegment() }
    var text = lastPoint.map { row.time - $0 > Self.maxInterval } == true ? endSegment() : ""
    if !isInSegment { text += "<trkseg>\n" }
    (isInSegment, lastPoint) = (true, row.time)
    count += 1
    text += "<trkpt lat=\"\(Value.text(latitude))\" lon=\"\(Value.text(longitude))\">"
    if let altitude = number(Self.altitude) { text += "<ele>\(Value.text(altitude))</ele>" }
    return text + "<time>\(CivilTime(row.time, in: .utc).iso(utc: true))</time>\(extensions)</trkpt>\n"
  }

  mutating func end() throws(Failure) -> String { endSegment() + "</trk>\n</gpx>\n" }

  private mutating func endSegment() -> String {
    defer { isInSegment = false }
    return isInSegment ? "</trkseg>\n" : ""
  }

  private func number(_ property: String) -> Double? {
    series.indices.first { series[$0].device == device && series[$0].property == property && values[$0] != nil }.flatMap {
      values[$0]?.number
    }
  }

  private var extensions: String {
    let elements = series.indices.compactMap { index -> String? in
      let source = series[index]
      let isPosition = source.device == device && [Self.latitude, Self.longitude, Self.altitude].contains(source.property)
      guard !isPosition, let value = values[index] else { return nil }
      let unit = source.unit.map { " unit=\"\(XMLText.escaped($0))\"" } ?? ""
      return "<v:value name=\"\(XMLText.escaped(source.reference))\"\(unit)>\(XMLText.escaped(Format.text(value)))</v:value>"
    }
    return elements.isEmpty ? "" : "<extensions>\(elements.joined())</extensions>"
  }
}

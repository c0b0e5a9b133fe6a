// The format of block files, which `vehiclectl history export` and `vehiclesim history` write: a line that identifies the format, then one
// JSON object per line, which contains a block of samples in Base64, and its series. It is the smallest export format, and the only one
// that an import restores exactly.

import Protocols

/// A line of a file of blocks: the parameters of Import, without the source.
public struct BlockLine: Sendable {
  public var device: String
  public var series: [HistoryContract.Series]
  /// The block of samples, in Base64.
  public var block: String
  /// Whether recording continued without a gap since the previous block of this device in the file.
  public var continues: Bool

  public static let header = "{\"format\":\"vehicled-blocks\",\"version\":1}\n"

  public init(device: String, series: [HistoryContract.Series], block: String, continues: Bool) {
    (self.device, self.series, self.block, self.continues) = (device, series, block, continues)
  }

  /// Parses a line; nil if it is invalid.
  public init?(_ json: JSON) {
    guard let device = json["device"]?.string, let block = json["block"]?.string, case .bool(let continues)? = json["continues"],
      case .array(let elements)? = json["series"]
    else { return nil }
    let series = elements.compactMap { element -> HistoryContract.Series? in
      guard case .int(let id)? = element["id"], let property = element["property"]?.string, let type = element["type"]?.string
      else { return nil }
      return HistoryContract.Series(id: id, device: device, property: property, type: type, unit: element["unit"]?.string)
    }
    guard series.count == elements.count else { return nil }
    self.init(device: device, series: series, block: block, continues: continues)
  }

  /// The line with its line feed.
  public var text: String {
    let series = series.map { element in
      JSON.members([
        "id": .int(element.id), "property": .string(element.property), "type": .string(element.type), "unit": element.unit.map(JSON.string),
      ])
    }
    return JSON.members([
      "device": .string(device), "continues": .bool(continues), "series": .array(series), "block": .string(block),
    ]).text + "\n"
  }
}

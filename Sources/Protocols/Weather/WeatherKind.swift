// The `weather` kind as the configuration knows it, and its keys once they are checked. It has no link: it asks an
// Open-Meteo server over HTTP. Where somebody lives is nobody's business, so no error may quote a coordinate.
// Facts: protocols of the mirror, §9 (Open-Meteo's forecast and geocoding services, their fair-use limit).

extension Kind {
  /// The weather at one place.
  public static let weather = Kind(
    name: "weather",
    summary: "The weather at one place, from Open-Meteo or a server like it",
    links: [],
    options: [
      Option("latitude", ValueRule(.float, unit: "°", range: -90...90), help: "Where, together with longitude"),
      Option("longitude", ValueRule(.float, unit: "°", range: -180...180), help: "Where, together with latitude"),
      Option("place", ValueRule(.string), help: "Or the name of a town, which is looked up once"),
      Option(
        "interval", ValueRule(.int, unit: "min", range: 15...1440), default: .int(15),
        help: "Minutes between two questions; the service tells nothing new more often"),
      Option("url", ValueRule(.string), default: .string("https://api.open-meteo.com"), help: "The server with the forecasts"),
      Option(
        "geocoding-url", ValueRule(.string), default: .string("https://geocoding-api.open-meteo.com"), help: "The server that knows places"),
      Option(
        "proxy", ValueRule(.string), help: "The way to them, as in http://192.168.0.1:3128; usually what the environment says; \"\": none"),
    ]
  ) { setup throws(OptionError) in
    WeatherMachine(try WeatherSettings(setup))
  }
}

/// Degrees, north and east positive.
struct Coordinates: Sendable, Equatable {
  var latitude: Double
  var longitude: Double
}

/// The checked keys of one weather device.
struct WeatherSettings: Sendable {
  enum Site: Sendable, Equatable {
    case coordinates(Coordinates)
    case place(String)

    /// What an answer is kept under: another site's must not be shown.
    var key: String {
      switch self {
      case .coordinates(let point): "\(WeatherRequest.decimal(point.latitude)),\(WeatherRequest.decimal(point.longitude))"
      case .place(let name): name
      }
    }
  }

  let site: Site
  let interval: Nanoseconds
  let url: String
  let geocodingURL: String
  let proxy: String?

  /// How long an answer may be shown.
  var freshFor: Nanoseconds { 3 * interval }

  private static let maxPlaceLength = 100

  /// What the keys say, or which of them cannot be.
  init(_ setup: Setup) throws(OptionError) {
    let options = setup.options
    switch (options["latitude"]?.number, options["longitude"]?.number, options["place"]) {
    case (let latitude?, let longitude?, nil): site = .coordinates(Coordinates(latitude: latitude, longitude: longitude))
    case (nil, nil, .string(let name)?):
      guard (1...Self.maxPlaceLength).contains(name.count), name.utf8.count <= 4 * Self.maxPlaceLength, name.contains(where: \.isLetter),
        name.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
      else {
        throw OptionError("place", "this names no place; write a town, as in \"Trondheim\"")
      }
      site = .place(name)
    case (nil, nil, _): throw OptionError("place", "nothing says where; add place, or latitude and longitude")
    case (_, _, .some): throw OptionError("place", "a place and coordinates exclude each other; leave one of them out")
    case (nil, _, _): throw OptionError("latitude", "longitude is there and latitude is not; add it")
    case (_, nil, _): throw OptionError("longitude", "latitude is there and longitude is not; add it")
    }
    interval = Nanoseconds(options["interval"]?.number ?? 15) * 60 * .second
    url = try setup.httpServer("url")
    geocodingURL = try setup.httpServer("geocoding-url")
    proxy = try setup.httpProxy()
  }
}

//! The plural by which an API server names a kind. kro takes it from the inflection library `flect` (1.0.3), as
//! ACK's generator does. An existing CRD is found again only under the same name, so its rules are followed
//! where they are odd as well, as far as a word may name a kind.

/// Words, also at the end of longer ones, that no ending tells. The first that fits counts.
const WORDS: [(&str, &str); 44] = [
    ("agenda", "agendas"),
    ("aircraft", "aircraft"),
    ("apex", "apices"),
    ("appendix", "appendices"),
    ("basis", "bases"),
    ("buffalo", "buffaloes"),
    ("bureau", "bureaus"),
    ("cactus", "cacti"),
    ("child", "children"),
    ("codex", "codices"),
    ("corpus", "corpora"),
    ("crisis", "crises"),
    ("criterion", "criteria"),
    ("curriculum", "curriculums"),
    ("ellipsis", "ellipses"),
    ("equipment", "equipment"),
    ("fish", "fish"),
    ("focus", "foci"),
    ("foot", "feet"),
    ("formula", "formulas"),
    ("genesis", "geneses"),
    ("goose", "geese"),
    ("helix", "helices"),
    ("human", "humans"),
    ("index", "indices"),
    ("information", "information"),
    ("kinesis", "kineses"),
    ("lexicon", "lexica"),
    ("locus", "loci"),
    ("man", "men"),
    ("money", "money"),
    ("mouse", "mice"),
    ("nucleus", "nuclei"),
    ("oasis", "oases"),
    ("person", "people"),
    ("police", "police"),
    ("quota", "quotas"),
    ("radius", "radii"),
    ("radix", "radices"),
    ("rice", "rice"),
    ("stadium", "stadiums"),
    ("thesis", "theses"),
    ("vertex", "vertices"),
    ("vortex", "vortices"),
];

/// Words that are so only when they stand alone.
const ALONE: [(&str, &str); 5] =
    [("alias", "aliases"), ("axis", "axes"), ("die", "dice"), ("ox", "oxen"), ("use", "uses")];

/// Endings. The first that fits counts; a word that has the ending of the plural is one already.
const ENDINGS: [(&str, &str); 55] = [
    ("tive", "tives"),
    ("eaf", "eaves"),
    ("oaf", "oaves"),
    ("arf", "arves"),
    ("rf", "rves"),
    ("lf", "lves"),
    ("fe", "ves"),
    ("ay", "ays"),
    ("ey", "eys"),
    ("oy", "oys"),
    ("quy", "quies"),
    ("uy", "uys"),
    ("y", "ies"),
    ("eau", "eaux"),
    ("nula", "bulae"),
    ("ium", "ia"),
    ("seum", "seums"),
    ("eum", "ea"),
    ("dum", "da"),
    ("elum", "ela"),
    ("olum", "ola"),
    ("ulum", "ula"),
    ("llum", "lla"),
    ("imum", "ima"),
    ("gnum", "gna"),
    ("brum", "bra"),
    ("crum", "cra"),
    ("serum", "sera"),
    ("trum", "tra"),
    ("antum", "anta"),
    ("atum", "ata"),
    ("entum", "enta"),
    ("etum", "eta"),
    ("itum", "ita"),
    ("otum", "ota"),
    ("trix", "trices"),
    ("mesis", "meses"),
    ("gnosis", "gnoses"),
    ("opsis", "opses"),
    ("ysis", "yses"),
    ("us", "uses"),
    ("ch", "ches"),
    ("io", "ios"),
    ("sh", "shes"),
    ("ss", "sses"),
    ("ez", "ezzes"),
    ("iz", "izzes"),
    ("tz", "tzes"),
    ("zz", "zzes"),
    ("ano", "anos"),
    ("lo", "los"),
    ("to", "tos"),
    ("oo", "oos"),
    ("o", "oes"),
    ("x", "xes"),
];

/// The plural of a kind, in lower case.
pub fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    for (singular, plural) in ALONE {
        if word == singular || word == plural {
            return plural.to_owned();
        }
    }
    for (ending, plural) in WORDS.into_iter().chain(ENDINGS) {
        if word.ends_with(plural) {
            return word;
        }
        if let Some(stem) = word.strip_suffix(ending) {
            return format!("{stem}{plural}");
        }
    }
    if word.ends_with('s') { word } else { format!("{word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_plurals_that_kro_gives_them() {
        for (kind, expected) in [
            ("EksCluster", "eksclusters"),
            ("VPC", "vpcs"),
            ("DHCPOptions", "dhcpoptions"),
            ("ElasticIPAddress", "elasticipaddresses"),
            ("AccessEntry", "accessentries"),
            ("Policy", "policies"),
            ("Gateway", "gateways"),
            ("Proxy", "proxies"),
            ("Key", "keys"),
            ("Ingress", "ingresses"),
            ("Database", "databases"),
            ("Endpoints", "endpoints"),
            ("Node", "nodes"),
            ("Redis", "redis"),
            ("Batch", "batches"),
            ("Mesh", "meshes"),
            ("Sandbox", "sandboxes"),
            ("SearchIndex", "searchindices"),
            ("Matrix", "matrices"),
            ("Status", "statuses"),
            ("Bus", "buses"),
            ("Warehouse", "warehouses"),
            ("Series", "series"),
            ("Data", "data"),
            ("Metadata", "metadata"),
            ("Media", "media"),
            ("Repo", "repoes"),
            ("Photo", "photos"),
            ("Studio", "studios"),
            ("Field", "fields"),
            ("Shelf", "shelves"),
            ("Knife", "knives"),
            ("Alias", "aliases"),
            ("DnsAlias", "dnsalias"),
            ("Analysis", "analyses"),
            ("ResourceQuota", "resourcequotas"),
            ("Quiz", "quizzes"),
        ] {
            assert_eq!(plural(kind), expected, "{kind}");
        }
    }
}
